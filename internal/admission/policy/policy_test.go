package policy_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/policy"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// onlyGet allows the verb get to all users, and nothing else.
type onlyGet struct{}

func (onlyGet) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.Verb == "get" {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "not get", nil
}

// A World has the built-in kinds, and the policy plugins.
type world struct {
	*testing.T
	ctx      context.Context
	registry *registry.Registry
	kinds    *resource.Set
	shared   *celpolicy.Shared
	metrics  *policy.Metrics
	counted  *match.Metrics
	parts    policy.Dependencies
	backend  kv.Backend

	warnings []string
	last     *request.Request
}

func newWorld(t *testing.T) *world { return newWorldWithFiles(t, &policy.Config{}) }

// newWorldWithFiles returns a world that also has validating policies from files.
func newWorldWithFiles(t *testing.T, c *policy.Config) *world {
	w := &world{T: t, kinds: resource.NewSet(builtin.Definitions()), shared: &celpolicy.Shared{}, counted: match.NewMetrics()}
	w.metrics = policy.NewMetrics(w.counted)
	backend := memkv.New(memkv.Options{})
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; _ = backend.Close() })
	catalog := &resource.Catalog{}
	catalog.Swap(w.kinds)
	parts := policy.Dependencies{
		Cache: cache, Core: w.kinds, Catalog: catalog, Authorizer: onlyGet{}, Shared: w.shared,
		Metrics: w.metrics, Manifests: manifest.NewMetrics("server"), Log: slog.New(slog.DiscardHandler),
		Decode: func(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error) {
			return w.registry.Decode(ctx, d, v, o)
		},
	}
	w.parts, w.backend, w.ctx = parts, backend, ctx
	w.start(c)
	w.write(`{apiVersion: v1, kind: Namespace, metadata: {name: dev, labels: {env: test}}}`)
	return w
}

// start creates the plugins, with empty caches.
func (w *world) start(c *policy.Config) {
	w.Helper()
	var plugins registry.Plugins
	mutating, err := policy.NewMutating(w.parts, &policy.Config{})
	if err != nil {
		w.Fatal(err)
	}
	validating, err := policy.NewValidating(w.parts, c)
	if err != nil {
		w.Fatal(err)
	}
	plugins.Add(mutating)
	plugins.Add(validating)
	w.registry = registry.New(w.backend, w.parts.Cache, registry.Options{Plugins: plugins})
}

// create creates an object, and returns it or the error.
func (w *world) create(text string) (object.Tree, error) {
	w.Helper()
	t := object.Tree{}
	if err := yaml.Unmarshal([]byte(text), &t); err != nil {
		w.Fatal(err)
	}
	for d := range w.kinds.All() {
		for _, v := range d.Versions {
			if d.Kind != object.Kind(t) || d.APIVersion(v.Name) != object.APIVersion(t) {
				continue
			}
			target := registry.Target{Definition: d, Version: v, Name: object.Name(t)}
			if d.Namespaced {
				target.Namespace = "dev"
			}
			w.warnings, w.last = nil, &request.Request{User: &request.User{Name: "ada"}}
			made, err := w.registry.Create(request.With(w.ctx, w.last), target, registry.Given(t), registry.WriteOptions{
				Warn:     func(message string) { w.warnings = append(w.warnings, message) },
				Complete: func(t object.Tree) (object.Tree, error) { t, _, err := v.Schema.Complete(t); return t, err },
			})
			return made.Tree, err
		}
	}
	w.Fatalf("no kind for %s", text)
	return nil, nil
}

func (w *world) write(all ...string) {
	w.Helper()
	for _, text := range all {
		if _, err := w.create(text); err != nil {
			w.Fatalf("%s: %v", text, err)
		}
	}
}

const (
	validating = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: %s}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, %s}}`
	validatingBinding = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s, %[2]s}}`
	mutating          = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: %s}, spec: {reinvocationPolicy: Never,
		matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, %s}}`
	mutatingBinding = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s, %[2]s}}`
	configMap       = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {size: "3"}}`
)

// said formats the result of a write: the error or the data of a ConfigMap, warnings, and audit
// annotations.
func (w *world) said(t object.Tree, err error) string {
	var all []string
	if err != nil {
		s := status.Of(err)
		all = append(all, fmt.Sprintf("%d %s: %s", s.Code, s.Reason, s.Message))
	} else {
		all = append(all, string(object.AppendJSON(nil, t["data"])))
	}
	for _, message := range w.warnings {
		all = append(all, "warning: "+message)
	}
	for _, a := range w.last.Annotations {
		all = append(all, a.Key+": "+a.Value)
	}
	return strings.Join(all, "\n")
}

const denied = `422 Invalid: configmaps "c" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: `

// Each policy has its own bindings. Policies are evaluated in the order of their names, and so are the bindings of each.
func TestBindings(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"b", "a", "a-b", "c"} {
		w.write(fmt.Sprintf(validating, name, `validations: [{expression: 'false', message: `+name+`}]`))
	}
	for _, names := range []string{"z a", "q b", "x a", "w a-b", "v gone", "a b"} { // c has none
		name, of, _ := strings.Cut(names, " ")
		w.write(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: ` + name + `}, spec: {policyName: ` + of + `, validationActions: [Warn]}}`)
	}
	_, err := w.create(configMap)
	var got []string
	for _, warning := range w.warnings {
		fields := strings.Split(warning, "'")
		got = append(got, fields[1]+" by "+fields[3])
	}
	if want := "a by x, a by z, a-b by w, b by a, b by q"; err != nil || strings.Join(got, ", ") != want {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}

// One policy applies to the create of a ConfigMap.
func TestValidating(t *testing.T) {
	tests := []struct{ name, policy, binding, want string }{
		{"true", `validations: [{expression: 'object.data.size == "3"'}]`, `validationActions: [Deny]`, `{"size":"3"}`},
		{"false", `validations: [{expression: 'object.data.size == "4"'}]`, `validationActions: [Deny]`, denied + `failed expression: object.data.size == "4"`},
		{"with a message", `validations: [{expression: 'false', message: nope, messageExpression: '"not " + string(object.data.size)'}]`, `validationActions: [Deny]`, denied + `not 3`},
		{"with a message that cannot be made", `validations: [{expression: 'false', message: nope, messageExpression: 'string(object.data.missing)'}]`, `validationActions: [Deny]`, denied + `nope`},
		{"with a reason", `validations: [{expression: 'false', message: nope, reason: Forbidden}]`, `validationActions: [Deny]`, strings.Replace(denied, "422 Invalid", "403 Forbidden", 1) + `nope`},
		{"an error", `validations: [{expression: 'object.data.missing == "1"', message: unused}]`, `validationActions: [Deny]`, denied + `expression 'object.data.missing == "1"' resulted in error: no such key: missing`},
		{"an error that is ignored", `failurePolicy: Ignore, validations: [{expression: 'object.data.missing == "1"'}]`, `validationActions: [Deny]`, `{"size":"3"}`},
		{"warn and audit", `validations: [{expression: 'true'}, {expression: 'false', message: nope}]`, `validationActions: [Warn, Audit]`,
			`{"size":"3"}
warning: Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': nope
validation.policy.admission.k8s.io/validation_failure: [{"message":"nope","policy":"p","binding":"p","expressionIndex":1,"validationActions":["Warn","Audit"]}]`},
		{"audit annotations", `auditAnnotations: [{key: size, valueExpression: 'string(object.data.size)'}, {key: none, valueExpression: 'null'}]`, `validationActions: [Deny]`, "{\"size\":\"3\"}\np/size: 3"},
		{"variables", `variables: [{name: size, expression: 'int(object.data.size)'}], validations: [{expression: 'variables.size > 3', messageExpression: 'string(variables.size)'}]`, `validationActions: [Deny]`, denied + `3`},
		{"conditions", `matchConditions: [{name: big, expression: 'int(object.data.size) > 3'}], validations: [{expression: 'false'}]`, `validationActions: [Deny]`, `{"size":"3"}`},
		{"who may what", `validations: [{expression: 'authorizer.requestResource.check("get").allowed()'}, {expression: 'authorizer.requestResource.check("delete").allowed()', message: may not}]`, `validationActions: [Deny]`, denied + `may not`},
		{"the namespace and the user", `validations: [{expression: 'false', messageExpression: 'namespaceObject.metadata.labels["env"] + request.userInfo.username'}]`, `validationActions: [Deny]`, denied + `testada`},
		{"another namespace", `validations: [{expression: 'false'}]`, `validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {env: other}}}`, `{"size":"3"}`},
		{"parameters", `paramKind: {apiVersion: v1, kind: Namespace}, validations: [{expression: 'false', messageExpression: 'string(params.metadata.name)'}]`, `validationActions: [Deny], paramRef: {name: dev, parameterNotFoundAction: Deny}`, denied + `dev`},
		{"no parameters", `paramKind: {apiVersion: v1, kind: Secret}, validations: [{expression: 'false'}]`, `validationActions: [Deny], paramRef: {name: dev, parameterNotFoundAction: Deny}`, denied + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"no parameters, and that is fine", `paramKind: {apiVersion: v1, kind: Secret}, validations: [{expression: 'false'}]`, `validationActions: [Deny], paramRef: {name: dev, parameterNotFoundAction: Allow}`, `{"size":"3"}`},
		{"no such kind of parameters", `paramKind: {apiVersion: v9, kind: Secret}, validations: [{expression: 'false'}]`, `validationActions: [Deny]`,
			`422 Invalid: configmaps "c" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: '/v9, Kind=Secret'`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(fmt.Sprintf(validating, "p", test.policy))
			if got := w.said(w.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: unbound}, data: {size: "3"}}`)); got != `{"size":"3"}` {
				t.Errorf("not bound: %s", got)
			}
			w.write(fmt.Sprintf(validatingBinding, "p", test.binding))
			if got := w.said(w.create(configMap)); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestMutating(t *testing.T) {
	const refused = `403 Invalid: policy 'p' with binding 'p' denied request: `
	configure := func(expression string) string {
		return `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: '` + expression + `'}}]`
	}
	patch := func(expression string) string {
		return `mutations: [{patchType: JSONPatch, jsonPatch: {expression: '` + expression + `'}}]`
	}
	tests := []struct{ name, policy, want string }{
		{"a configuration", configure(`Object{data: {"more": object.data.size + "!"}}`), `{"more":"3!","size":"3"}`},
		{"nothing", configure(`Object{}`), `{"size":"3"}`},
		{"a field that is unknown", configure(`Object{dada: {"a": "b"}}`), refused + `error applying patch: failed to convert patch object to typed object: .dada: field not declared in schema`},
		{"a type with another name", configure(`Object{metadata: Object.other{name: "c"}}`), refused + `type mismatch: unexpected type name "Object.other", expected "Object.metadata", which matches field name path from root Object type`},
		{"an error", configure(`Object{data: {"more": string(object.data.missing)}}`), refused + `expression 'Object{data: {"more": string(object.data.missing)}}' resulted in error: no such key: missing`},
		{"an error that is ignored", "failurePolicy: Ignore, " + configure(`Object{data: {"more": string(object.data.missing)}}`), `{"size":"3"}`},
		{"a JSON patch", patch(`[JSONPatch{op: "replace", path: "/data/size", value: "4"}, JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("a"), value: "b"}]`), `{"a":"b","size":"4"}`},
		{"a test that fails", patch(`[JSONPatch{op: "test", path: "/data/size", value: "4"}, JSONPatch{op: "remove", path: "/data"}]`), `{"size":"3"}`},
		{"a path that is not there", patch(`[JSONPatch{op: "remove", path: "/nothing/below"}]`), refused + `JSON Patch: remove operation does not apply: doc is missing path: "/nothing/below": missing value`},
		{"a value of another type", patch(`[JSONPatch{op: "replace", path: "/data", value: 4}]`), `500 InternalError: Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string`},
		{"variables and conditions", `variables: [{name: v, expression: 'object.data.size'}], matchConditions: [{name: c, expression: 'object.data.size == "3"'}], ` + configure(`Object{data: {"more": string(variables.v)}}`), `{"more":"3","size":"3"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(fmt.Sprintf(mutating, "p", test.policy), fmt.Sprintf(mutatingBinding, "p", "paramRef: null"))
			if got := w.said(w.create(configMap)); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Policies are evaluated in the order of their names, and again by their reinvocationPolicy.
func TestReinvocation(t *testing.T) {
	count := `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{data: {"%[1]s": string(int(object.data[?"%[1]s"].orValue("0")) + 1)}}'}}]`
	w := newWorld(t)
	for name, again := range map[string]string{"a": "IfNeeded", "b": "Never", "c": "IfNeeded"} {
		p := strings.Replace(fmt.Sprintf(mutating, name, fmt.Sprintf(count, name)), "reinvocationPolicy: Never", "reinvocationPolicy: "+again, 1)
		w.write(p, fmt.Sprintf(mutatingBinding, name, "paramRef: null"))
	}
	if got := w.said(w.create(configMap)); got != `{"a":"2","b":"1","c":"2","size":"3"}` {
		t.Error(got)
	}
}

// Policies that are stored before the server starts are in force.
func TestStoredPolicies(t *testing.T) {
	w := newWorld(t)
	w.write(fmt.Sprintf(validating, "p", `validations: [{expression: "object.metadata.name != 'c'", message: not that one}]`), fmt.Sprintf(validatingBinding, "p", "validationActions: [Deny]"),
		fmt.Sprintf(mutating, "p", `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: {'was': 'here'}}"}}]`), fmt.Sprintf(mutatingBinding, "p", "paramRef: null"))
	w.start(&policy.Config{})
	if _, err := w.create(configMap); err == nil || !strings.Contains(err.Error(), "not that one") {
		t.Errorf("not refused: %v", err)
	}
	made, err := w.create(strings.Replace(configMap, "name: c", "name: d", 1))
	if data, _ := made["data"].(object.Tree); err != nil || data["was"] != "here" {
		t.Errorf("made %v (%v), not changed", data, err)
	}
}
