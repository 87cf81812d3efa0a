package oracle

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	upstreampolicy "k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	accessaudit "github.com/anykind/anykind/internal/access/audit"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// someOf returns a few of the values, possibly none.
func someOf(r *rand.Rand, values ...string) (out []string) {
	for range r.IntN(3) {
		out = append(out, values[r.IntN(len(values))])
	}
	return out
}

func oneOf(r *rand.Rand, values ...string) string { return values[r.IntN(len(values))] }

var auditStages = []string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}

// randomAuditPolicy returns a valid policy.
func randomAuditPolicy(r *rand.Rand) map[string]any {
	var rules []map[string]any
	for range 1 + r.IntN(6) {
		rule := map[string]any{
			"level": oneOf(r, "None", "Metadata", "Request", "RequestResponse"), "users": someOf(r, "a", "b", "c"),
			"userGroups": someOf(r, "g", "h", "i"), "verbs": someOf(r, "get", "list", "create"), "omitStages": someOf(r, auditStages...),
		}
		switch r.IntN(3) {
		case 0:
			rule["nonResourceURLs"] = someOf(r, "*", "/a", "/a*", "/b/*", "/b")
		case 1:
			var resources []map[string]any
			for range 1 + r.IntN(2) {
				g := map[string]any{"group": oneOf(r, "", "apps", "*")}
				if r.IntN(3) > 0 {
					g["resources"] = append(someOf(r, "pods", "pods/log", "pods/*", "*/log", "*", "nodes"), oneOf(r, "pods", "nodes/log", "*/*"))
					g["resourceNames"] = someOf(r, "x", "y", "")
				}
				resources = append(resources, g)
			}
			rule["resources"], rule["namespaces"] = resources, someOf(r, "", "n", "m")
		}
		if r.IntN(2) == 0 {
			rule["omitManagedFields"] = r.IntN(2) == 0
		}
		rules = append(rules, rule)
	}
	return map[string]any{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, "omitStages": someOf(r, auditStages...), "omitManagedFields": r.IntN(2) == 0}
}

// A policy decides as that of kube-apiserver about 200,000 random requests.
func TestAuditPolicy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(t.TempDir(), "policy.yaml")
	levels := map[audit.Level]int{}
	for range 400 {
		text, err := yaml.Marshal(randomAuditPolicy(r))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		theirs, err := upstreampolicy.LoadPolicyFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		evaluator := upstreampolicy.NewPolicyRuleEvaluator(theirs)
		policy, err := accessaudit.ReadPolicy(file, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for range 500 {
			a := authz.Attributes{Info: request.Info{Verb: oneOf(r, "get", "list", "create", "watch"), Path: oneOf(r, "/a", "/ab", "/b", "/b/c", "/")}}
			their := authorizer.AttributesRecord{Verb: a.Verb, Path: a.Path}
			if r.IntN(2) == 0 {
				a.IsResource, a.Group, a.Resource = true, oneOf(r, "", "apps", "batch"), oneOf(r, "pods", "nodes")
				a.Subresource, a.Name, a.Namespace = oneOf(r, "", "log", "status"), oneOf(r, "", "x", "z"), oneOf(r, "", "n", "o")
				their.ResourceRequest, their.APIGroup, their.Resource = true, a.Group, a.Resource
				their.Subresource, their.Name, their.Namespace = a.Subresource, a.Name, a.Namespace
			}
			if r.IntN(8) > 0 {
				a.User = &request.User{Name: oneOf(r, "a", "b", "d"), Groups: someOf(r, "g", "h", "j")}
				their.User = &user.DefaultInfo{Name: a.User.Name, Groups: a.User.Groups}
			}
			want, got := evaluator.EvaluatePolicyRule(their), policy.Decide(&a)
			levels[want.Level]++
			if got.Level != want.Level || got.OmitManagedFields != want.OmitManagedFields || !sameStages(got.OmitStages, want.OmitStages) {
				t.Fatalf("%+v: %+v, want %+v\n%s", a, got, want, text)
			}
		}
	}
	if len(levels) < 4 {
		t.Errorf("the requests have only the levels %v", levels)
	}
}

func sameStages(a, b []audit.Stage) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
