package podsecurity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/podsecurity"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
)

func world(t *testing.T, config, labels string) *admissiontest.World {
	w := admissiontest.New(t, func(w *admissiontest.World) []any {
		p, err := podsecurity.New([]byte(config), w.Cache, w.Kinds, podsecurity.NewMetrics(), gate.Current)
		if err != nil {
			t.Fatal(err)
		}
		return []any{p}
	})
	w.Have("{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {" + labels + "}}}")
	return w
}

const (
	prefix = "pod-security.kubernetes.io/"

	baseline   = prefix + "enforce: baseline"
	restricted = prefix + "enforce: restricted"

	onHost  = "hostNetwork: true, containers: [{name: c, image: i}]"
	plain   = "containers: [{name: c, image: i}]"
	careful = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"

	root = `allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), ` +
		`unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), ` +
		`runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), ` +
		`seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
)

func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + spec + "}}"
}

// answer returns the error of a write, or its warnings.
func answer(w *admissiontest.World, err error) string {
	if err != nil {
		return err.Error()
	}
	return strings.Join(w.Warnings, "\n")
}

// Pods are evaluated against the level of their namespace.
func TestPods(t *testing.T) {
	tests := []struct{ name, labels, spec, want string }{
		{"nothing is in force", "a: b", onHost, ``},
		{"baseline", baseline, onHost, `pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		{"within baseline", baseline, plain, ``},
		{"restricted", restricted, plain, `pods "p" is forbidden: violates PodSecurity "restricted:latest": ` + root},
		{"within restricted", restricted, careful, ``},
		{"of a version", restricted + ", " + prefix + "enforce-version: v1.0", plain,
			`pods "p" is forbidden: violates PodSecurity "restricted:v1.0": runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)`},
		{"of a later release", baseline + ", " + prefix + "enforce-version: v1.99", onHost, `pods "p" is forbidden: violates PodSecurity "baseline:v1.99": host namespaces (hostNetwork=true)`},
		{"warned of only", prefix + "warn: baseline", onHost, `would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		{"warned of more", baseline + ", " + prefix + "warn: restricted", plain, `would violate PodSecurity "restricted:latest": ` + root},
		{"audited only", prefix + "audit: restricted", plain, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := world(t, "", test.labels)
			_, err := w.Create(pod(test.spec))
			if got := answer(w, err); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Evaluations leave audit annotations.
func TestSays(t *testing.T) {
	w := world(t, "", baseline+", "+prefix+"audit: restricted")
	if _, err := w.Create(pod(plain)); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"enforce-policy":   "baseline:latest",
		"audit-violations": `would violate PodSecurity "restricted:latest": ` + root,
		"exempt":           "",
	} {
		if got := w.Annotation(prefix + key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// Evaluations are counted, enforced or not.
func TestCounts(t *testing.T) {
	m := podsecurity.NewMetrics()
	w := admissiontest.New(t, func(w *admissiontest.World) []any {
		p, err := podsecurity.New(nil, w.Cache, w.Kinds, m, gate.Current)
		if err != nil {
			t.Fatal(err)
		}
		return []any{p}
	})
	w.Have("{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {" + baseline + ", " + prefix + "warn: restricted, " + prefix + "warn-version: v1.99}}}")
	w.Have(pod(plain))
	if _, err := w.Create(pod(onHost)); err == nil {
		t.Error("a pod that is not allowed")
	}
	registered := prometheus.NewRegistry()
	registered.MustRegister(m.Collectors()...)
	families, err := registered.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, counted := range f.GetMetric() {
			said := f.GetName()
			for _, label := range counted.GetLabel() {
				said += " " + label.GetValue()
			}
			got = append(got, fmt.Sprint(said, counted.GetCounter().GetValue()))
		}
	}
	want := []string{ // decision, mode, level, version, operation, resource, subresource
		"pod_security_evaluations_total allow enforce baseline latest create pod 1",
		"pod_security_evaluations_total allow enforce privileged latest create pod 0",
		"pod_security_evaluations_total allow enforce privileged latest update pod 0",
		"pod_security_evaluations_total deny enforce baseline latest create pod 1",
		"pod_security_evaluations_total deny warn restricted future create pod 1",
		"pod_security_exemptions_total create controller 0",
		"pod_security_exemptions_total create pod 0",
		"pod_security_exemptions_total update controller 0",
		"pod_security_exemptions_total update pod 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// An update is evaluated if it adds an image or a container.
func TestUpdates(t *testing.T) {
	w := world(t, "", "a: b")
	w.Have(pod(onHost))
	if _, err := w.Update("{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {"+baseline+"}}}", ""); err != nil {
		t.Fatal(err)
	}
	const refused = `pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`
	for _, test := range []struct{ name, patch, subresource, want string }{
		{"a label", "metadata: {name: p, labels: {a: c}}", "", ""},
		{"a status", "metadata: {name: p}, status: {phase: Running}", "status", ""},
		{"an image", "metadata: {name: p}, spec: {containers: [{name: c, image: other}]}", "", refused},
		{"a container", "metadata: {name: p}, spec: {ephemeralContainers: [{name: e, image: i}]}", "ephemeralcontainers", refused},
	} {
		_, err := w.Update("{apiVersion: v1, kind: Pod, "+test.patch+"}", test.subresource)
		if got := answer(w, err); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// Pod templates lead to warnings, and are never rejected.
func TestTemplates(t *testing.T) {
	w := world(t, "", baseline)
	const template = "{metadata: {labels: {a: b}}, spec: {" + onHost + "}}"
	const want = `would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`
	for _, text := range []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: " + template + "}}",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: " + template + "}}",
		"{apiVersion: v1, kind: PodTemplate, metadata: {name: d}, template: " + template + "}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: d}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " + onHost + "}}}}}}",
	} {
		_, err := w.Create(text)
		if got := answer(w, err); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if _, err := w.Create("{apiVersion: v1, kind: ReplicationController, metadata: {name: r}, spec: {replicas: 0}}"); err != nil && strings.Contains(err.Error(), "PodSecurity") {
		t.Error(err)
	}
}

// The configuration has exemptions, and defaults for namespaces without labels.
func TestConfigured(t *testing.T) {
	const config = `{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration,
		defaults: {enforce: baseline}, exemptions: {usernames: [eve], runtimeClasses: [free]}}`
	w := world(t, config, "a: b")
	const refused = `pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`
	if _, err := w.Create(pod(onHost)); err == nil || err.Error() != refused {
		t.Error(err)
	}
	if _, err := w.Create(pod("runtimeClassName: free, " + onHost)); err != nil || w.Annotation(prefix+"exempt") != "runtimeClass" {
		t.Error(err, w.Annotation(prefix+"exempt"))
	}
	w.User = &request.User{Name: "eve"}
	if _, err := w.Create(strings.Replace(pod(onHost), "name: p", "name: q", 1)); err != nil || w.Annotation(prefix+"exempt") != "user" {
		t.Error(err, w.Annotation(prefix+"exempt"))
	}
	w = world(t, strings.Replace(config, "usernames: [eve]", "namespaces: [dev]", 1), "a: b")
	if _, err := w.Create(pod(onHost)); err != nil || w.Annotation(prefix+"exempt") != "namespace" {
		t.Error(err, w.Annotation(prefix+"exempt"))
	}
	_, err := w.Update("{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {"+restricted+", "+prefix+"audit-version: v1.20}}}", "")
	if got, want := answer(w, err), `namespace "dev" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The server does not start with an invalid configuration.
func TestRefusesConfigurations(t *testing.T) {
	const start = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, "
	for config, want := range map[string]string{
		start + "default: {}}":                                                                  `unknown field "default"`,
		start + "defaults: {enforce: some}}":                                                    `must be one of privileged, baseline, restricted`,
		start + "defaults: {warn-version: '1.2'}}":                                              `must be "latest" or "v1.x"`,
		start + "exemptions: {namespaces: [a, a]}}":                                             `exemptions.namespaces[1]: Duplicate value: "a"`,
		start + "exemptions: {usernames: ['']}}":                                                `username must not be empty`,
		start + "exemptions: {runtimeClasses: [A]}}":                                            `exemptions.runtimeClasses[0]: Invalid value: "A"`,
		"{apiVersion: pod-security.admission.config.k8s.io/v2, kind: PodSecurityConfiguration}": `for version "pod-security.admission.config.k8s.io/v2"`,
		"{apiVersion: pod-security.admission.config.k8s.io/v1beta1, kind: OtherConfiguration}":  `expected PodSecurityConfiguration, got OtherConfiguration`,
		"{apiVersion: pod-security.admission.config.k8s.io/v1alpha1, kind: PodSecurityConfiguration, defaults: {audit: baseline}}": ``,
	} {
		_, err := podsecurity.New([]byte(config), nil, admissiontest.New(t, func(*admissiontest.World) []any { return nil }).Kinds, podsecurity.NewMetrics(), gate.Current)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
}

// Invalid labels are rejected, unless they are old.
func TestLabels(t *testing.T) {
	w := world(t, "", "a: b")
	const want = `Namespace "other" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "none": must be one of privileged, baseline, restricted`
	if _, err := w.Create("{apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {" + prefix + "enforce: none}}}"); err == nil || err.Error() != want {
		t.Error(err)
	}
	if _, err := w.Update("{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {"+prefix+"warn-version: '1'}}}", ""); err == nil || !strings.Contains(err.Error(), `must be "latest" or "v1.x"`) {
		t.Error(err)
	}
}

// A stricter level leads to warnings about existing pods. One pod of each controller is evaluated
// first, and the number of pods is limited.
func TestExistingPods(t *testing.T) {
	w := world(t, "", "a: b")
	for _, name := range []string{"b", "a", "c"} {
		w.Have(strings.Replace(pod(onHost), "name: p", "name: "+name, 1))
	}
	w.Have(strings.Replace(pod("hostPID: true, "+plain), "name: p", "name: d", 1))
	update := func(labels string) []string {
		if _, err := w.Update("{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {"+labels+"}}}", ""); err != nil {
			t.Fatal(err)
		}
		return w.Warnings
	}
	want := []string{
		`existing pods in namespace "dev" violate the new PodSecurity enforce level "baseline:latest"`,
		`a (and 3 other pods): host namespaces`,
	}
	if got := update(baseline); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := update(prefix + "enforce: privileged"); len(got) > 0 {
		t.Errorf("%q", got)
	}
	for i := range 3001 {
		w.Have(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: x%d, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]}, spec: {%s}}", i, careful))
	}
	if got := update(baseline); len(got) == 0 || !strings.HasSuffix(got[0], "of 3005 existing pods") {
		t.Errorf("%q", got)
	}
}
