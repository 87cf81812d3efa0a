package pods_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/pods"
	"github.com/anykind/anykind/internal/store/stored"
)

func listed(w *admissiontest.World) *stored.Lister[corev1.Node] {
	return stored.List[corev1.Node](w.Cache, w.Kinds, corev1.Resource("nodes"))
}

// A step creates a pod, or changes it, perhaps through a subresource.
type step struct {
	spec   string // in addition to a container
	change string // a merge patch of the pod
	by     string // the subresource
	field  string // of the response
	want   string // the field, or the error
}

func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + spec + " containers: [{name: c, image: i}]}}"
}

// Each plugin runs alone, on some pods in a world with some objects.
func TestPlugins(t *testing.T) {
	const (
		notReady    = `{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":3}`
		unreachable = `{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":4}`
		nodes       = `{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: z, a: b}}}`
		classes     = `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: r}, handler: h, overhead: {podFixed: {cpu: 250m}}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: s}, handler: h, scheduling: {nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}]}}`
	)
	always := func(plugin any) func(*admissiontest.World) any {
		return func(*admissiontest.World) any { return plugin }
	}
	runtimes := func(w *admissiontest.World) any {
		return &pods.RuntimeClass{Classes: stored.List[nodev1.RuntimeClass](w.Cache, w.Kinds, nodev1.Resource("runtimeclasses"))}
	}
	tests := []struct {
		name   string
		plugin func(*admissiontest.World) any
		have   string
		steps  []step
	}{
		{"DefaultTolerationSeconds", always(pods.DefaultTolerationSeconds{NotReady: 3, Unreachable: 4}), "", []step{
			{field: "spec.tolerations", want: "[" + notReady + "," + unreachable + "]"},
			{spec: `tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}],`, field: "spec.tolerations",
				want: `[{"key":"node.kubernetes.io/not-ready","operator":"Exists"},` + unreachable + `]`},
			{spec: `tolerations: [{operator: Exists}],`, field: "spec.tolerations", want: `[{"operator":"Exists"}]`},
		}},
		{"ExtendedResourceToleration", always(pods.ExtendedResourceToleration{}), "", []step{
			{field: "spec.tolerations"},
			{spec: `initContainers: [{name: i, image: i, resources: {limits: {example.com/b: "1", example.com/a: "1", cpu: "1"}}}],`, field: "spec.tolerations",
				want: `[{"effect":"NoSchedule","key":"example.com/a","operator":"Exists"},{"effect":"NoSchedule","key":"example.com/b","operator":"Exists"}]`},
		}},
		{"AlwaysPullImages", always(pods.AlwaysPullImages{}), "", []step{
			{spec: `volumes: [{name: v, image: {reference: r}}],`, field: "spec.volumes", want: `[{"image":{"pullPolicy":"Always","reference":"r"},"name":"v"}]`},
			{change: `metadata: {name: p, labels: {a: b}}`, field: "spec.volumes", want: `[{"image":{"pullPolicy":"Always","reference":"r"},"name":"v"}]`},
		}},
		{"LimitPodHardAntiAffinityTopology", always(pods.LimitHardAntiAffinity{}), "", []step{
			{spec: `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}},`},
			{spec: `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}},`,
				want: `pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed`},
		}},
		{"RuntimeClass", runtimes, classes, []step{
			{spec: "runtimeClassName: r,", field: "spec.overhead", want: `{"cpu":"250m"}`},
			{spec: `runtimeClassName: r, overhead: {cpu: "0.25"},`, field: "spec.overhead", want: `{"cpu":"250m"}`},
			{spec: `runtimeClassName: r, overhead: {cpu: "1"},`, want: `pods "p" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`},
			{spec: `overhead: {},`, want: `pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
			{spec: `runtimeClassName: r, overhead: {},`, field: "spec.overhead", want: `{"cpu":"250m"}`},
			{spec: `overhead: {cpu: "1"},`, want: `pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
			{spec: "runtimeClassName: none,", want: `pods "p" is forbidden: pod rejected: RuntimeClass "none" not found`},
			{spec: "runtimeClassName: s, nodeSelector: {c: d},", field: "spec.nodeSelector", want: `{"a":"b","c":"d"}`},
			{spec: "runtimeClassName: s, nodeSelector: {a: d},", want: `pods "p" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = d`},
			{spec: "runtimeClassName: s, tolerations: [{key: k, operator: Exists, effect: NoSchedule}],", field: "spec.tolerations", want: `[{"key":"k","operator":"Exists"}]`},
		}},
		{"PodTopologyLabels", func(w *admissiontest.World) any { return &pods.TopologyLabels{Nodes: listed(w)} }, nodes, []step{
			{spec: "nodeName: n1,", field: "metadata.labels", want: `{"topology.kubernetes.io/zone":"z"}`},
			{spec: "nodeName: none,", field: "metadata.labels"},
			{field: "metadata.labels"},
		}},
		{"PodResizeValidator", func(w *admissiontest.World) any { return &pods.Resize{Nodes: listed(w)} }, nodes, []step{
			{spec: "nodeName: n1, initContainers: [{name: i, image: i, resources: {requests: {memory: 1Mi}}}],"},
			{change: `metadata: {name: p}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}`, by: "resize",
				want: `pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 1000, allocatable: 0; memory, requested: 1048576, allocatable: 0`},
			{change: `metadata: {name: p, labels: {a: b}}`, by: "resize"},
		}},
		{"NodeDeclaredFeatureValidator", func(w *admissiontest.World) any { return &pods.NodeDeclaredFeatures{Nodes: listed(w)} }, nodes, []step{
			{spec: `nodeName: n1, resources: {requests: {cpu: "1"}},`},
			{change: `metadata: {name: p}, spec: {resources: {requests: {cpu: "2"}}}`, by: "resize",
				want: `pods "p" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "n1"`},
			{spec: `nodeName: none, resources: {requests: {cpu: "1"}},`},
			{change: `metadata: {name: p}, spec: {resources: {requests: {cpu: "2"}}}`, by: "resize", want: `pods "p" is forbidden: node "none" not found`},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var w *admissiontest.World
			for i, s := range test.steps {
				if s.change == "" {
					w = admissiontest.New(t, func(w *admissiontest.World) []any { return []any{test.plugin(w)} })
					if test.have != "" {
						w.Have(test.have)
					}
				}
				if got := s.run(w); got != s.want {
					t.Errorf("step %d: %s\nwant\n%s", i+1, got, s.want)
				}
			}
		})
	}
}

func (s step) run(w *admissiontest.World) string {
	w.T.Helper()
	write := func() (map[string]any, error) { return w.Create(pod(s.spec)) }
	if s.change != "" {
		write = func() (map[string]any, error) { return w.Update("{apiVersion: v1, kind: Pod, "+s.change+"}", s.by) }
	}
	made, err := write()
	switch {
	case err != nil:
		return err.Error()
	case s.field == "":
		return ""
	}
	return admissiontest.Field(made, s.field)
}

// The pods of a namespace get its node selector. A conflicting selector is rejected.
func TestNodeSelector(t *testing.T) {
	const config = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: pool=shared, dev: 'pool=shared,a=b'}"
	tests := []struct{ name, config, namespace, spec, want string }{
		{"the one for all", config, ``, ``, `{"pool":"shared"}`},
		{"and what is allowed besides", config, ``, `nodeSelector: {a: b},`, `{"a":"b","pool":"shared"}`},
		{"nothing else", config, ``, `nodeSelector: {c: d},`, `pods "p" is forbidden: pod node label selector labels conflict with its namespace whitelist`},
		{"not the opposite", config, ``, `nodeSelector: {pool: mine},`, `pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector`},
		{"the one of the namespace", ``, `a=b, c = d`, ``, `{"a":"b","c":"d"}`},
		{"none", ``, ``, `nodeSelector: {c: d},`, `{"c":"d"}`},
		{"an invalid selector", ``, `a`, ``, `invalid selector: [a]`},
		{"an invalid configuration", `{`, ``, ``, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := admissiontest.New(t, func(w *admissiontest.World) []any {
				return []any{&pods.NodeSelector{
					Namespaces: stored.List[corev1.Namespace](w.Cache, w.Kinds, corev1.Resource("namespaces")),
					Selectors:  pods.ReadNodeSelectors([]byte(test.config)),
				}}
			})
			annotations := ""
			if test.namespace != "" {
				annotations = fmt.Sprintf(", annotations: {scheduler.alpha.kubernetes.io/node-selector: %q}", test.namespace)
			}
			w.Have("{apiVersion: v1, kind: Namespace, metadata: {name: dev" + annotations + "}}")
			if got := (step{spec: test.spec, field: "spec.nodeSelector"}).run(w); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Pods get default tolerations, and can only have allowed ones.
func TestTolerationRestriction(t *testing.T) {
	const config = `{"apiVersion":"podtolerationrestriction.admission.k8s.io/v1alpha1","kind":"Configuration","default":[{"key":"a","operator":"Exists"}],"whitelist":[{"key":"a","operator":"Exists"}]}`
	tests := []struct{ name, config, annotations, spec, want string }{
		{"the default", config, ``, ``, `[{"key":"a","operator":"Exists"}]`},
		{"less than the default", config, ``, `tolerations: [{key: a, operator: Exists, effect: NoSchedule}],`, `[{"key":"a","operator":"Exists"}]`},
		{"another", config, ``, `tolerations: [{key: b, operator: Exists}],`, `pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist`},
		{"what the namespace allows", config, `scheduler.alpha.kubernetes.io/tolerationsWhitelist: '[{"operator":"Exists"}]'`, `tolerations: [{key: b, operator: Exists}],`,
			`[{"key":"b","operator":"Exists"},{"key":"a","operator":"Exists"}]`},
		{"none by default", config, `scheduler.alpha.kubernetes.io/defaultTolerations: ""`, ``, ``},
		{"not only for what is there", ``, ``, `initContainers: [{name: i, image: i, resources: {requests: {cpu: "1"}}}],`,
			`[{"effect":"NoSchedule","key":"node.kubernetes.io/memory-pressure","operator":"Exists"}]`},
		{"nothing is said", ``, ``, `tolerations: [{key: b, operator: Exists}],`, `[{"key":"b","operator":"Exists"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var text []byte
			if test.config != "" {
				text = []byte(test.config)
			}
			c, err := pods.ReadTolerations(text)
			if err != nil {
				t.Fatal(err)
			}
			w := admissiontest.New(t, func(w *admissiontest.World) []any {
				return []any{&pods.TolerationRestriction{Config: c, Namespaces: stored.List[corev1.Namespace](w.Cache, w.Kinds, corev1.Resource("namespaces"))}}
			})
			w.Have("{apiVersion: v1, kind: Namespace, metadata: {name: dev, annotations: {" + test.annotations + "}}}")
			if got := (step{spec: test.spec, field: "spec.tolerations"}).run(w); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
	for text, want := range map[string]string{
		`{"kind":"Other"}`: `the configuration is a "Other" of "", not a "Configuration" of "podtolerationrestriction.admission.k8s.io/v1alpha1"`,
		`{"apiVersion":"podtolerationrestriction.admission.k8s.io/v1alpha1","kind":"Configuration","default":[{"key":"a","operator":"Is"}]}`: `invalid config: [podtolerationrestriction.default[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"]`,
	} {
		if _, err := pods.ReadTolerations([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%v\nwant\n%s", err, want)
		}
	}
}
