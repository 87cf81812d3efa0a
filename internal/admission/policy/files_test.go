package policy_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/admission/policy"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// place writes a manifest file. Documents that begin with a brace must be JSON.
func place(t *testing.T, folder, name string, documents ...string) {
	t.Helper()
	var all []byte
	for _, d := range documents {
		data, err := yaml.YAMLToJSON([]byte(d))
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, data...), "\n---\n"...)
	}
	if err := os.WriteFile(filepath.Join(folder, name), all, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Policies from files apply to the same writes as policies of the API, run before those, and also
// apply to policies themselves.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	place(t, folder, "policy.yaml",
		strings.Replace(fmt.Sprintf(validating, "p.static.k8s.io", `validations: [{expression: 'object.metadata.name != "held"', message: from a file}]`),
			`apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]`,
			`apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]`, 1),
		fmt.Sprintf(validatingBinding, "p.static.k8s.io", `validationActions: [Deny]`))
	w := newWorldWithFiles(t, &policy.Config{StaticManifestsDir: folder})
	w.write(
		fmt.Sprintf(validating, "a", `validations: [{expression: 'object.metadata.name != "held"', message: from the API}]`),
		fmt.Sprintf(validatingBinding, "a", `validationActions: [Deny]`),
		// A binding of the API cannot refer to a policy from a file.
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: p.static.k8s.io, validationActions: [Warn]}}`,
	)
	const of = `ValidatingAdmissionPolicy 'p.static.k8s.io' with binding 'p.static.k8s.io'`
	tests := []struct{ name, object, want string }{
		{"a ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: held}}`, `422 Invalid: configmaps "held" is forbidden: ` + of + ` denied request: from a file`},
		{"another", `{apiVersion: v1, kind: ConfigMap, metadata: {name: free}}`, "null"},
		{"a policy", fmt.Sprintf(validating, "held", `validations: [{expression: 'true'}]`),
			`422 Invalid: validatingadmissionpolicies.admissionregistration.k8s.io "held" is forbidden: ` + of + ` denied request: from a file`},
		{"a review: exempt from admission", `{apiVersion: authentication.k8s.io/v1, kind: TokenReview, metadata: {name: held}}`, `null`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := w.said(w.create(test.object)); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// The server does not start with invalid files.
func TestFilesRefused(t *testing.T) {
	good := fmt.Sprintf(validating, "p.static.k8s.io", `validations: [{expression: 'true'}]`)
	bind := func(name, spec string) string {
		return fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %s}, spec: {validationActions: [Deny], %s}}`, name, spec)
	}
	tests := []struct {
		name, want string
		files      []string // documents of one file
	}{
		{name: "nothing"},
		{name: "a policy and a binding of one name", files: []string{good, bind("p.static.k8s.io", "policyName: p.static.k8s.io")}},
		{name: "a name of the API", files: []string{fmt.Sprintf(validating, "p", `validations: [{expression: 'true'}]`)},
			want: `"p" in file "DIR/a.yaml" must have a name ending with ".static.k8s.io"`},
		{name: "two of a name", files: []string{good, good}, want: `duplicate name "p.static.k8s.io" found in file "DIR/a.yaml" (previously seen in "DIR/a.yaml")`},
		{name: "parameters", files: []string{fmt.Sprintf(validating, "p.static.k8s.io", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: 'true'}]`)},
			want: `ValidatingAdmissionPolicy "p.static.k8s.io": spec.paramKind is not supported for static manifests`},
		{name: "an expression that does not compile", files: []string{fmt.Sprintf(validating, "p.static.k8s.io", `validations: [{expression: 'object.'}]`)},
			want: `error loading DIR/a.yaml: ValidatingAdmissionPolicy "p.static.k8s.io": spec.validations[0].expression: Invalid value: "object.": compilation failed: `},
		{name: "a binding of parameters", files: []string{good, bind("b.static.k8s.io", `policyName: p.static.k8s.io, paramRef: {name: a, parameterNotFoundAction: Deny}`)},
			want: `binding "b.static.k8s.io": spec.paramRef is not supported for static manifests`},
		{name: "a binding of a policy of the API", files: []string{good, bind("b.static.k8s.io", `policyName: p`)},
			want: `binding "b.static.k8s.io": spec.policyName "p" must end with ".static.k8s.io"`},
		{name: "a binding of nothing", files: []string{good, bind("b.static.k8s.io", `policyName: other.static.k8s.io`)},
			want: `binding "b.static.k8s.io" references policy "other.static.k8s.io" which does not exist in the manifest directory`},
		{name: "a policy of the other plugin", files: []string{fmt.Sprintf(mutating, "p.static.k8s.io", `mutations: []`)}, want: "unsupported resource type *v1.MutatingAdmissionPolicy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			place(t, folder, "a.yaml", test.files...)
			kinds := resource.NewSet(builtin.Definitions())
			_, err := policy.NewValidating(policy.Dependencies{
				Cache: watchcache.New(memkv.New(memkv.Options{}), watchcache.Options{}), Core: kinds, Manifests: manifest.NewMetrics("server"), Log: slog.New(slog.DiscardHandler),
			}, &policy.Config{StaticManifestsDir: folder})
			want := strings.ReplaceAll(test.want, "DIR", folder)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
