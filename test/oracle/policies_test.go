package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	upstreamcel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/warning"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/policy"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Random policies, and creates and updates of random ConfigMaps: the same are denied with the same
// message, with the same warnings and the same audit annotations.
func TestValidatingPolicies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	refused, warned, annotated, let := 0, 0, 0, 0
	for range volume(100) {
		w := newPolicies(t)
		for i := range 1 + rng.IntN(3) {
			w.addRandom(t, rng, fmt.Sprint("p", i))
		}
		for i := range 4 {
			got, want := w.ask(t, rng, fmt.Sprint("c", i))
			if d := cmp.Diff(want, got); d != "" {
				policies, _ := json.MarshalIndent(w.hooks, "", " ")
				t.Fatalf("-Kubernetes +anykind\n%s\n%s", d, policies)
			}
			switch {
			case want.Refused != "":
				refused++
			default:
				let++
			}
			warned += len(want.Warnings)
			annotated += len(want.Annotations)
		}
		w.stop()
	}
	t.Logf("%d were refused and %d let in, with %d warnings and %d annotations", refused, let, warned, annotated)
	if min(refused, let, warned, annotated) < volume(50) {
		t.Error("that is too little of something to show anything")
	}
}

// A verdict is the result of a request.
type verdict struct {
	Refused     string
	Warnings    []string
	Annotations map[string]string
}

func verdictOf(err error, warnings []string, annotations map[string]string) verdict {
	v := verdict{Warnings: warnings, Annotations: annotations}
	if err != nil {
		s := status.Of(err)
		said, _ := json.Marshal(s)
		v.Refused = string(said)
	}
	return v
}

// policies has both plugins, with the same policies.
type policies struct {
	registry *registry.Registry
	kinds    *resource.Set
	hooks    []validating.PolicyHook
	asks     func(ctx context.Context, a *registry.Admission) // called before ours
	stop     func()

	policiesMutate []mutating.PolicyHook
	begins, ends   func(ctx context.Context, a *registry.Admission) // called before and after our mutating plugins
}

// A mutator is a test's plugin among the mutating ones.
type mutator struct {
	ask *func(ctx context.Context, a *registry.Admission)
}

func (m mutator) Mutate(ctx context.Context, a *registry.Admission) error {
	if *m.ask != nil {
		(*m.ask)(ctx, a)
	}
	return nil
}

func (p *policies) Validate(ctx context.Context, a *registry.Admission) error {
	if p.asks != nil {
		p.asks(ctx, a)
	}
	return nil
}

func newPolicies(t *testing.T) *policies {
	p := &policies{kinds: resource.NewSet(builtin.Definitions())}
	backend := memkv.New(memkv.Options{})
	caching := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- caching.Run(ctx) }()
	p.stop = func() { cancel(); <-done; _ = backend.Close() }
	catalog := &resource.Catalog{}
	catalog.Swap(p.kinds)
	var plugins registry.Plugins
	parts := policy.Dependencies{
		Cache: caching, Core: p.kinds, Catalog: catalog, Authorizer: letters{}, Shared: &celpolicy.Shared{}, Metrics: policy.NewMetrics(match.NewMetrics()),
		Decode: func(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error) {
			return p.registry.Decode(ctx, d, v, o)
		},
	}
	mutates, err := policy.NewMutating(parts, &policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	validates, err := policy.NewValidating(parts, &policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []any{mutator{&p.begins}, mutates, mutator{&p.ends}, p, validates} {
		plugins.Add(plugin)
	}
	p.registry = registry.New(backend, caching, registry.Options{Plugins: plugins})
	if _, err := p.create(t, nil, "", "namespaces", &corev1.Namespace{TypeMeta: typeMeta("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{"env": "test"}}}, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// letters allows verbs that begin with one of the first letters.
type letters struct{}

func (letters) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.Verb < "h" {
		return authz.Allow, "early", nil
	}
	return authz.NoOpinion, "late " + a.User.Name, nil
}

type upstreamLetters struct{}

func (upstreamLetters) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() < "h" {
		return authorizer.DecisionAllow, "early", nil
	}
	return authorizer.DecisionNoOpinion, "late " + a.GetUser().GetName(), nil
}

func (p *policies) target(group, plural, name string) registry.Target {
	d := p.kinds.Lookup(group, plural)
	target := registry.Target{Definition: d, Version: d.StorageVersion(), Name: name}
	if v := d.Version("v1"); v != nil {
		target.Version = v
	}
	if d.Namespaced {
		target.Namespace = "dev"
	}
	return target
}

// create creates an object. It passes our annotations to q and our warnings to warn.
func (p *policies) create(t *testing.T, q *request.Request, group, plural string, o runtime.Object, warn func(string)) (object.Tree, error) {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	target := p.target(group, plural, object.Name(tree))
	if q == nil {
		q = &request.Request{}
	}
	made, err := p.registry.Create(request.With(t.Context(), q), target, registry.Given(tree), registry.WriteOptions{
		Warn: warn, Complete: func(t object.Tree) (object.Tree, error) {
			t, _, err := target.Version.Schema.Complete(t)
			return t, err
		},
	})
	return made.Tree, err
}

const admissionGroup = "admissionregistration.k8s.io"

// addRandom adds a policy with bindings to both.
func (p *policies) addRandom(t *testing.T, rng *rand.Rand, name string) {
	made := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	for {
		o := randomPolicy(rng, name)
		tree, err := p.create(t, nil, admissionGroup, "validatingadmissionpolicies", o, nil)
		if err != nil {
			continue // a random policy may be invalid
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, made); err != nil {
			t.Fatal(err)
		}
		break
	}
	hook := validating.PolicyHook{Policy: made, Evaluator: upstreamCompiled(t, made)}
	for i := range 1 + rng.IntN(2) {
		b := randomBinding(rng, made.Name, fmt.Sprint(name, "-", i))
		tree, err := p.create(t, nil, admissionGroup, "validatingadmissionpolicybindings", b, nil)
		if err != nil {
			t.Fatal(err)
		}
		bound := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, bound); err != nil {
			t.Fatal(err)
		}
		hook.Bindings = append(hook.Bindings, bound)
	}
	p.hooks = append(p.hooks, hook)
}

// upstreamCompiled compiles a policy with Kubernetes' compiler, as its plugin does.
func upstreamCompiled(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	c, err := upstreamcel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	may, mayNot := upstreamcel.OptionalVariableDeclarations{HasAuthorizer: true}, upstreamcel.OptionalVariableDeclarations{}
	var variables []upstreamcel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	c.CompileAndStoreVariables(variables, may, environment.StoredExpressions)
	var conditions, validations, annotations []upstreamcel.ExpressionAccessor
	messages := make([]upstreamcel.ExpressionAccessor, len(p.Spec.Validations))
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for i, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	for _, a := range p.Spec.AuditAnnotations {
		annotations = append(annotations, &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(c.CompileCondition(conditions, may, environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	return validating.NewValidator(c.CompileCondition(validations, may, environment.StoredExpressions), matcher,
		c.CompileCondition(annotations, may, environment.StoredExpressions), c.CompileCondition(messages, mayNot, environment.StoredExpressions), p.Spec.FailurePolicy, nil)
}

// An annotating admission.Attributes records its audit annotations.
type annotating struct {
	admission.Attributes
	all map[string]string
}

func (a *annotating) AddAnnotation(key, value string) error {
	a.all[key] = value
	return nil
}

type warnings struct{ all []string }

func (w *warnings) AddWarning(_, text string) {
	if !slices.Contains(w.all, text) {
		w.all = append(w.all, text)
	}
}

// ask creates a random ConfigMap, and sometimes updates it, and returns the verdicts of both.
func (p *policies) ask(t *testing.T, rng *rand.Rand, name string) (got, want verdict) {
	dispatcher := validating.NewDispatcher(upstreamLetters{}, generic.NewPolicyMatcher(matching.NewMatcher(p.namespaces(t), nil)))
	p.asks = func(ctx context.Context, a *registry.Admission) {
		if a.Target.Definition.Plural != "configmaps" {
			return
		}
		old, err := a.Old(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var was runtime.Object
		if old != nil {
			was = &unstructured.Unstructured{Object: object.CloneTree(old)}
		}
		attributes := &annotating{all: map[string]string{}, Attributes: admission.NewAttributesRecord(&unstructured.Unstructured{Object: object.CloneTree(a.Object)}, was,
			corev1.SchemeGroupVersion.WithKind("ConfigMap"), "dev", name, corev1.SchemeGroupVersion.WithResource("configmaps"), "",
			admission.Operation(a.Operation), a.Options(), false, &user.DefaultInfo{Name: "ada", Groups: []string{"devs"}})}
		said := &warnings{}
		err = dispatcher.Dispatch(warning.WithWarningRecorder(ctx, said), attributes, admission.NewObjectInterfacesFromScheme(runtime.NewScheme()), p.hooks)
		want = verdictOf(err, said.all, attributes.all)
	}
	said := &warnings{}
	q := &request.Request{User: &request.User{Name: "ada", Groups: []string{"devs"}}}
	made, err := p.create(t, q, "", "configmaps", randomConfigMap(rng, name), func(text string) { said.AddWarning("", text) })
	if err == nil && rng.IntN(2) == 0 {
		said, q = &warnings{}, &request.Request{User: q.User}
		next := randomConfigMap(rng, name)
		_, err = p.registry.Modify(request.With(t.Context(), q), p.target("", "configmaps", name), func(object.Tree) (object.Tree, error) {
			t := object.CloneTree(made)
			t["data"] = map[string]any{}
			for k, v := range next.Data {
				t["data"].(map[string]any)[k] = v
			}
			return t, nil
		}, registry.WriteOptions{Warn: func(text string) { said.AddWarning("", text) }})
	}
	annotations := map[string]string{}
	for _, a := range q.Annotations {
		annotations[a.Key] = a.Value
	}
	return verdictOf(err, said.all, annotations), want
}

// namespaces lists the stored namespace dev.
func (p *policies) namespaces(t *testing.T) listersv1.NamespaceLister {
	read, err := p.registry.Get(t.Context(), p.target("", "namespaces", "dev"), "")
	if err != nil {
		t.Fatal(err)
	}
	data, err := read.JSON()
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Namespace{}
	if err := json.Unmarshal(data, n); err != nil {
		t.Fatal(err)
	}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(n); err != nil {
		t.Fatal(err)
	}
	return listersv1.NewNamespaceLister(indexer)
}

func randomConfigMap(rng *rand.Rand, name string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{TypeMeta: typeMeta("v1", "ConfigMap"), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"on": anyOf(rng, "a", "b", "c")}}, Data: map[string]string{}}
	for range rng.IntN(4) {
		c.Data[anyOf(rng, "x", "y", "z")] = anyOf(rng, "1", "2", "text", " spaced ", "")
	}
	return c
}

const loop = `['1','2','3','4','5','6','7','8','9'].`

func randomBool(rng *rand.Rand, depth int) string {
	if depth > 0 && rng.IntN(2) == 0 {
		a, b := randomBool(rng, depth-1), randomBool(rng, depth-1)
		return anyOf(rng, "("+a+") && ("+b+")", "("+a+") || ("+b+")", "!("+a+")", "("+a+") ? ("+b+") : false",
			"["+randomText(rng)+", 'q'].exists(t, t == 'q' && ("+a+"))", loop+"all(i, i != '' && ("+a+"))", randomText(rng)+" == "+randomText(rng))
	}
	if rng.IntN(60) == 0 { // an expensive expression
		return anyOf(rng,
			loop+"all(a,"+loop+"all(b,"+loop+"all(c,"+loop+"all(d, a + b + c + d != object.metadata.name))))",
			loop+"all(a,"+loop+"all(b,"+loop+"all(c,"+loop+"all(d,"+loop+"all(e, a + b + c + d + e + 'some more of text' != object.metadata.name)))))",
			loop+"all(a,"+loop+"all(b,"+loop+"all(c,"+loop+"all(d,"+loop+"all(e,"+loop+"all(f, a + b + c + d + e + f != object.metadata.name))))))")
	}
	return anyOf(rng, "true", "false", "object.data.x == '1'", "object.data.y == 'text'", "has(object.data.z)", "has(object.data)", "oldObject == null", "oldObject.data.x == object.data.x",
		"object.metadata.name.endsWith('1')", "size(object.data) > 1", "request.operation == 'CREATE'", "request.userInfo.groups.exists(g, g == 'devs')", "namespaceObject.metadata.labels['env'] == 'test'",
		"authorizer.requestResource.check('get').allowed()", "authorizer.group('').resource('pods').check('list').allowed()", "authorizer.serviceAccount('dev', 'x').path('/a').check('post').reason() == 'late system:serviceaccount:dev:x'",
		"int(object.data.x) > 1", "variables.t == '1'", "variables.b", "object == oldObject", "object.data == {'x': '1'}", "'x' in object.data", "object.data.all(k, k < 'z')")
}

func randomText(rng *rand.Rand) string {
	return anyOf(rng, "'text'", "string(object.data.x)", "string(object.data.y) + '!'", "object.metadata.name + ' ' + request.operation", "string(variables.t)", "string(size(object.data))", "'two\\nlines'", "'   '",
		"string(oldObject.metadata.name)", "request.name + request.namespace", "string(variables.b)", "namespaceObject.metadata.name")
}

func randomPolicy(rng *rand.Rand, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: randomMatch(rng, true),
		Variables:        []admissionregistrationv1.Variable{{Name: "t", Expression: randomText(rng)}, {Name: "b", Expression: randomBool(rng, 1)}},
	}
	failure := anyOf(rng, admissionregistrationv1.Fail, admissionregistrationv1.Ignore)
	spec.FailurePolicy = &failure
	for i := range rng.IntN(3) {
		spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprint("m", i), Expression: anyOf(rng, "true", randomBool(rng, 1))})
	}
	for range 1 + rng.IntN(3) {
		v := admissionregistrationv1.Validation{Expression: randomBool(rng, 2)}
		if rng.IntN(2) == 0 {
			v.Message = anyOf(rng, "a message", "another")
		}
		if rng.IntN(2) == 0 {
			v.MessageExpression = randomText(rng)
		}
		if rng.IntN(3) == 0 {
			reason := anyOf(rng, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)
			v.Reason = &reason
		}
		spec.Validations = append(spec.Validations, v)
	}
	for i := range rng.IntN(3) {
		spec.AuditAnnotations = append(spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{Key: fmt.Sprint("k", i), ValueExpression: anyOf(rng, randomText(rng), "null", randomBool(rng, 0)+" ? "+randomText(rng)+" : 'no'")})
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{TypeMeta: typeMeta(admissionGroup+"/v1", "ValidatingAdmissionPolicy"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func randomMatch(rng *rand.Rand, rules bool) *admissionregistrationv1.MatchResources {
	m := &admissionregistrationv1.MatchResources{}
	rule := func() admissionregistrationv1.NamedRuleWithOperations {
		r := admissionregistrationv1.NamedRuleWithOperations{}
		r.Operations = anyOf(rng, []admissionregistrationv1.OperationType{"*"}, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}, []admissionregistrationv1.OperationType{"UPDATE"})
		r.APIGroups, r.APIVersions = anyOf(rng, []string{""}, []string{"*"}, []string{"apps", ""}), anyOf(rng, []string{"v1"}, []string{"*"})
		r.Resources = anyOf(rng, []string{"configmaps"}, []string{"*"}, []string{"secrets", "configmaps"}, []string{"secrets"})
		if rng.IntN(6) == 0 {
			r.ResourceNames = []string{"c1", "c2"}
		}
		return r
	}
	if rules {
		m.ResourceRules = append(m.ResourceRules, rule(), rule())
	}
	if rng.IntN(5) == 0 {
		m.ExcludeResourceRules = append(m.ExcludeResourceRules, rule())
		m.ExcludeResourceRules[0].ResourceNames = []string{"c1"}
	}
	if rng.IntN(3) == 0 {
		m.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"on": anyOf(rng, "a", "b")}}
	}
	if rng.IntN(4) == 0 {
		m.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": anyOf(rng, "test", "test", "prod")}}
	}
	return m
}

func randomBinding(rng *rand.Rand, of, name string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	spec := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: of}
	spec.ValidationActions = anyOf(rng, []admissionregistrationv1.ValidationAction{"Deny"}, []admissionregistrationv1.ValidationAction{"Warn", "Audit"}, []admissionregistrationv1.ValidationAction{"Audit", "Deny"}, []admissionregistrationv1.ValidationAction{"Warn"})
	if rng.IntN(2) == 0 {
		spec.MatchResources = randomMatch(rng, rng.IntN(2) == 0)
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{TypeMeta: typeMeta(admissionGroup+"/v1", "ValidatingAdmissionPolicyBinding"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}
