package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	upstreamcel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// Random policies, with apply configurations and with JSON patches, give the same result for random
// Deployments, or fail with the same message. The test also runs the second round of reinvocation.
//
// After the evaluation of a match condition, Kubernetes' plugin can no longer use a map or a list of
// the object as the value of a JSON patch. Here it can, so a policy has only one of the two.
func TestMutatingPolicies(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	refused, changed, same := 0, 0, 0
	for range volume(80) {
		w, conditions := newPolicies(t), rng.IntN(2) == 0
		for i := range 1 + rng.IntN(3) {
			w.addMutating(t, rng, fmt.Sprint("p", i), conditions)
		}
		for i := range 3 {
			sent, got, want := w.askMutating(t, randomDeployment(rng, fmt.Sprint("d", i)))
			if d := cmp.Diff(want, got); d != "" {
				var policies strings.Builder
				for _, h := range w.policiesMutate {
					said, _ := json.Marshal(h.Policy.Spec)
					fmt.Fprintf(&policies, "%s\n", said)
				}
				t.Fatalf("-Kubernetes +anykind\n%s\n%s", d, policies.String())
			}
			switch {
			case want.Refused != "":
				refused++
			case object.Equal(want.Object, sent):
				same++
			default:
				changed++
			}
		}
		w.stop()
	}
	t.Logf("%d were changed, %d left and %d refused", changed, same, refused)
	if changed < volume(40) || same < volume(20) || refused < volume(40) {
		t.Error("that is too little of something to show anything")
	}
}

// An outcome is the result of policies for an object, or their error.
type outcome struct {
	Object  object.Tree
	Refused string
}

// addMutating adds a policy with its bindings to both.
func (p *policies) addMutating(t *testing.T, rng *rand.Rand, name string, conditions bool) {
	made := &admissionregistrationv1.MutatingAdmissionPolicy{}
	for {
		tree, err := p.create(t, nil, admissionGroup, "mutatingadmissionpolicies", randomMutating(rng, name, conditions), nil)
		if err != nil {
			continue // a random policy may be invalid
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, made); err != nil {
			t.Fatal(err)
		}
		break
	}
	hook := mutating.PolicyHook{Policy: made, Evaluator: upstreamMutating(t, made)}
	for i := range 1 + rng.IntN(2) {
		b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			TypeMeta: typeMeta(admissionGroup+"/v1", "MutatingAdmissionPolicyBinding"), ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, "-", i)},
			Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		}
		if rng.IntN(4) == 0 {
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"on": "a"}}}
		}
		tree, err := p.create(t, nil, admissionGroup, "mutatingadmissionpolicybindings", b, nil)
		if err != nil {
			t.Fatal(err)
		}
		bound := &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, bound); err != nil {
			t.Fatal(err)
		}
		hook.Bindings = append(hook.Bindings, bound)
	}
	p.policiesMutate = append(p.policiesMutate, hook)
}

// upstreamMutating compiles a policy with Kubernetes' compiler, as its plugin does.
func upstreamMutating(t *testing.T, p *admissionregistrationv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
	c, err := upstreamcel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	may := upstreamcel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []upstreamcel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &mutating.Variable{Name: v.Name, Expression: v.Expression})
	}
	c.CompileAndStoreVariables(variables, may, environment.StoredExpressions)
	out := mutating.PolicyEvaluator{CompositedCompiler: c}
	if len(p.Spec.MatchConditions) > 0 {
		var conditions []upstreamcel.ExpressionAccessor
		for i := range p.Spec.MatchConditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
		}
		out.Matcher = matchconditions.NewMatcher(c.CompileCondition(conditions, may, environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	patches := may
	patches.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		if m.JSONPatch != nil {
			out.Mutators = append(out.Mutators, patch.NewJSONPatcher(c.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, patches, environment.StoredExpressions)))
			continue
		}
		out.Mutators = append(out.Mutators, patch.NewApplyConfigurationPatcher(c.CompileMutatingEvaluator(&patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, patches, environment.StoredExpressions)))
	}
	return out
}

// builtinTypes has the types of built-in kinds.
type builtinTypes struct{ managedfields.TypeConverter }

func (c builtinTypes) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return c.TypeConverter
}

func (builtinTypes) Run(context.Context) {}

// ourDefaults applies our defaults, which another test compares with Kubernetes'.
type ourDefaults struct {
	admission.ObjectInterfaces
	version *resource.Version
}

func (d ourDefaults) GetObjectDefaulter() runtime.ObjectDefaulter { return d }

func (d ourDefaults) Default(in runtime.Object) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	if err == nil {
		tree, _, err = d.version.Schema.Complete(tree)
	}
	made := &appsv1.Deployment{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(tree, made)
	}
	if err != nil {
		panic(err)
	}
	*in.(*appsv1.Deployment) = *made
}

// askMutating creates a Deployment, and returns both results.
func (p *policies) askMutating(t *testing.T, d *appsv1.Deployment) (sent object.Tree, got, want outcome) {
	target := p.target("apps", "deployments", d.Name)
	dispatcher := mutating.NewDispatcher(upstreamLetters{}, matching.NewMatcher(p.namespaces(t), nil), builtinTypes{applyconfigurations.NewTypeConverter(scheme.Scheme)})
	through := false
	p.begins = func(ctx context.Context, a *registry.Admission) {
		if through = false; a.Again || a.Target.Definition != target.Definition {
			return
		}
		sent = object.CloneTree(a.Object)
		given := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.CloneTree(a.Object), given); err != nil {
			t.Fatal(err)
		}
		attributes := admission.NewAttributesRecord(given, nil, appsv1.SchemeGroupVersion.WithKind("Deployment"), "dev", d.Name,
			appsv1.SchemeGroupVersion.WithResource("deployments"), "", admission.Create, a.Options(), false, &user.DefaultInfo{Name: "ada", Groups: []string{"devs"}})
		objects := ourDefaults{admission.NewObjectInterfacesFromScheme(scheme.Scheme), target.Version}
		err := dispatcher.Dispatch(ctx, attributes, objects, p.policiesMutate)
		if round := attributes.GetReinvocationContext(); err == nil && round.ShouldReinvoke() {
			round.SetIsReinvoke()
			err = dispatcher.Dispatch(ctx, attributes, objects, p.policiesMutate)
		}
		if err != nil {
			want.Refused = verdictOf(err, nil, nil).Refused
			return
		}
		given.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment")) // conversion drops it
		if want.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(given); err != nil {
			t.Fatal(err)
		}
	}
	p.ends = func(_ context.Context, a *registry.Admission) {
		if a.Target.Definition == target.Definition {
			through, got.Object = true, object.CloneTree(a.Object)
		}
	}
	q := &request.Request{User: &request.User{Name: "ada", Groups: []string{"devs"}}}
	_, err := p.create(t, q, "apps", "deployments", d, func(string) {})
	if !through {
		got = outcome{Refused: verdictOf(err, nil, nil).Refused}
	}
	if got.Object != nil { // Kubernetes' object was decoded into a Go type, too
		made := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, made); err != nil {
			t.Fatal(err)
		}
		if got.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(made); err != nil {
			t.Fatal(err)
		}
	}
	return sent, got, want
}

func randomDeployment(rng *rand.Rand, name string) *appsv1.Deployment {
	labels := map[string]string{"on": anyOf(rng, "a", "b")}
	d := &appsv1.Deployment{TypeMeta: typeMeta("apps/v1", "Deployment"), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if replicas := int32(rng.IntN(4)); replicas > 0 {
		d.Spec.Replicas = &replicas
	}
	if rng.IntN(2) == 0 {
		d.Annotations = map[string]string{"a/b": "c"}
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	for i := range 1 + rng.IntN(2) {
		c := corev1.Container{Name: fmt.Sprint("c", i), Image: anyOf(rng, "i:1", "j"), Args: anyOf(rng, nil, []string{"x", "y"})}
		if rng.IntN(2) == 0 {
			c.Env = []corev1.EnvVar{{Name: "E", Value: "1"}, {Name: "F"}}
			c.Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, c)
	}
	return d
}

func randomMutating(rng *rand.Rand, name string, conditions bool) *admissionregistrationv1.MutatingAdmissionPolicy {
	spec := admissionregistrationv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		}}}},
		Variables:          []admissionregistrationv1.Variable{{Name: "t", Expression: anyOf(rng, "object.metadata.name", "'text'", "object.spec.template.spec.containers[0].image")}, {Name: "n", Expression: anyOf(rng, "object.spec.replicas", "3", "size(object.spec.template.spec.containers)")}},
		ReinvocationPolicy: anyOf(rng, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy),
	}
	failure := anyOf(rng, admissionregistrationv1.Fail, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)
	spec.FailurePolicy = &failure
	if conditions && rng.IntN(2) == 0 {
		spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "m", Expression: anyOf(rng, "object.spec.replicas > 1", "!('done' in object.metadata.labels)", "object.metadata.annotations['a/b'] == 'c'", "variables.n == 2")}}
	}
	for range 1 + rng.IntN(2) {
		if rng.IntN(2) == 0 {
			spec.Mutations = append(spec.Mutations, admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: randomConfiguration(rng)}})
			continue
		}
		var operations []string
		for range 1 + rng.IntN(3) {
			operations = append(operations, randomOperation(rng, !conditions))
		}
		spec.Mutations = append(spec.Mutations, admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{Expression: anyOf(rng, "", "object.spec.replicas > 1 ? [] : ") + "[" + strings.Join(operations, ", ") + "]"}})
	}
	return &admissionregistrationv1.MutatingAdmissionPolicy{TypeMeta: typeMeta(admissionGroup+"/v1", "MutatingAdmissionPolicy"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// randomConfiguration returns an expression for an apply configuration.
func randomConfiguration(rng *rand.Rand) string {
	const pod = "Object.spec.template.spec"
	inPod := func(fields string) string {
		return "Object{spec: Object.spec{template: Object.spec.template{spec: " + pod + "{" + fields + "}}}}"
	}
	text := func() string { return anyOf(rng, "'a'", "'b'", "variables.t", "object.metadata.name", "''") }
	number := func() string {
		return anyOf(rng, "1", "5", "variables.n", "object.spec.replicas", "object.spec.replicas + 1", "-1", "'7'", "1.5", "2.0")
	}
	container := func() string {
		fields := []string{"name: " + anyOf(rng, "'c0'", "'c1'", "'new'", text())}
		for _, f := range []string{"image: " + text(), "env: [" + pod + ".containers.env{name: 'E', value: " + text() + "}]", "env: [" + pod + ".containers.env{name: 'G'}, " + pod + ".containers.env{name: 'E'}]",
			"ports: [" + pod + ".containers.ports{containerPort: " + number() + "}]", "resources: " + pod + ".containers.resources{limits: {'cpu': '0.5'}}", "args: ['z']", "imagePullPolicy: 'Never'",
			"securityContext: " + pod + ".containers.securityContext{privileged: false}", "stdin: true", "wrong: 1"} {
			if rng.IntN(6) == 0 {
				fields = append(fields, f)
			}
		}
		return pod + ".containers{" + strings.Join(fields, ", ") + "}"
	}
	return anyOf(rng,
		"Object{}",
		"Object{metadata: Object.metadata{labels: {'done': "+text()+"}}}",
		"Object{metadata: Object.metadata{labels: {'on': 'x', 'done': 'y'}, annotations: {'k/l': "+text()+"}}}",
		"Object{metadata: Object.metadata{annotations: {}}}",
		"Object{metadata: Object.metadata{finalizers: ['a.b/c']}}",
		"Object{metadata: Object.metadata{name: "+text()+"}}",
		"has(object.metadata.annotations) ? Object{} : Object{metadata: Object.metadata{annotations: {'new': 'yes'}}}",
		"Object{spec: Object.spec{replicas: "+number()+"}}",
		"Object{spec: Object.spec{?replicas: optional.none(), paused: true}}",
		"Object{spec: Object.spec{?replicas: optional.of("+anyOf(rng, "4", "object.spec.replicas")+")}}",
		"Object{spec: Object.spec{selector: Object.spec.wrong{}}}",
		"Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'on': 'z'}}}}",
		"Object{spec: Object.spec{strategy: Object.spec.strategy{type: 'Recreate'}}}",
		"Object{spec: Object.spec{strategy: Object.spec.strategy{rollingUpdate: Object.spec.strategy.rollingUpdate{maxSurge: "+anyOf(rng, "1", "'10%'")+"}}}}",
		"Object{spec: 1}", "Object{status: Object.status{replicas: 1}}", "Object{foo: 'bar'}", "Object{kind: 'Pod'}",
		inPod("containers: ["+container()+"]"), inPod("containers: ["+container()+"]"), inPod("containers: ["+container()+", "+container()+"]"),
		inPod("containers: object.spec.template.spec.containers.map(c, "+pod+".containers{name: c.name, image: c.image + '!'})"),
		inPod("initContainers: ["+pod+".initContainers{name: 'i', image: 'i'}]"),
		inPod("tolerations: ["+pod+".tolerations{key: 'k'}]"), inPod("nodeSelector: {'a': "+text()+"}"), inPod("hostAliases: ["+pod+".hostAliases{ip: '1.2.3.4', hostnames: ['h']}]"),
		inPod("securityContext: "+pod+".securityContext{runAsUser: "+number()+", supplementalGroups: [1]}"),
		inPod("volumes: ["+pod+".volumes{name: 'v', emptyDir: "+pod+".volumes.emptyDir{}}]"),
		inPod("terminationGracePeriodSeconds: "+number()), inPod("serviceAccountName: "+text()),
	)
}

// randomOperation returns an expression for an operation of a JSON patch. With parts, its value may be
// a part of the object.
func randomOperation(rng *rand.Rand, parts bool) string {
	path := func() string {
		return anyOf(rng, "'/metadata/labels/done'", "'/metadata/labels/on'", "'/metadata/labels'", "'/metadata/annotations'", "'/metadata/annotations/' + jsonpatch.escapeKey('a/b')", "'/metadata/annotations/a~1b'",
			"'/spec/replicas'", "'/spec/template/spec/containers/0/image'", "'/spec/template/spec/containers/0/args'", "'/spec/template/spec/containers/0/args/-'", "'/spec/template/spec/containers/0/env/0'", "'/spec/template/spec/containers/1'", "'/spec/template/spec/containers/-'",
			"'/spec/template/spec/nodeSelector'", "'/spec/paused'", "'/spec/template/spec/containers/7/image'", "'/nope'", "'/spec/nope'", "''", "'no/slash'", "'/spec/template/spec/priority'", "'/kind'", "'/apiVersion'")
	}
	value := func() string {
		if parts && rng.IntN(5) == 0 {
			return anyOf(rng, "object.metadata.labels", "object.spec.template.spec.containers[0]", "object.spec.template.spec.containers", "object.metadata.creationTimestamp")
		}
		return anyOf(rng, "'a'", "variables.t", "variables.n", "1", "2.0", "1.5", "true", "null", "{'a': 'b'}", "{'a': 1}", "['p', 'q']", "[]", "{}", "Object.spec.template.spec.containers{name: 'n', image: 'm'}",
			"{'name': 'n', 'image': 'm'}", "Object.metadata{labels: {'a': 'b'}}", "object.spec.replicas", "Object.spec{selector: Object.spec.wrong{}}", "duration('1s')", "b'bytes'", "'x'.size()", "uint(3)")
	}
	return anyOf(rng,
		"JSONPatch{op: 'add', path: "+path()+", value: "+value()+"}", "JSONPatch{op: 'add', path: "+path()+", value: "+value()+"}",
		"JSONPatch{op: 'add', path: '/metadata/labels/done', value: 'yes'}", "JSONPatch{op: 'replace', path: '/spec/replicas', value: variables.n}", "JSONPatch{op: 'replace', path: "+path()+", value: "+value()+"}",
		"JSONPatch{op: 'remove', path: "+path()+"}", "JSONPatch{op: 'test', path: "+path()+", value: "+value()+"}", "JSONPatch{op: 'test', path: '/spec/replicas', value: 1}",
		"JSONPatch{op: 'copy', from: "+path()+", path: "+path()+"}", "JSONPatch{op: 'move', from: "+path()+", path: "+path()+"}", "JSONPatch{op: 'add', path: "+path()+"}", "JSONPatch{op: 'wrong', path: "+path()+"}")
}
