package abac

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

func load(t *testing.T, text string) (Policies, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file)
}

// Each policy grants its rights to its subjects only.
func TestAuthorize(t *testing.T) {
	const v1beta1 = `{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {`
	bob := &request.User{Name: "bob", Groups: []string{"team", request.Authenticated}}
	anonymous := &request.User{Name: request.Anonymous, Groups: []string{request.Unauthenticated}}
	pods := request.Info{IsResource: true, Verb: "get", Resource: "pods", Namespace: "one"}
	deletion := request.Info{IsResource: true, Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "two"}
	node := request.Info{IsResource: true, Verb: "get", Resource: "nodes"}
	logs, version := request.Info{Verb: "get", Path: "/logs/a"}, request.Info{Verb: "get", Path: "/version"}
	all := []request.Info{pods, deletion, node, logs, version}
	for _, tt := range []struct {
		line    string
		bob     []request.Info
		unknown int // how many of all an unauthenticated user may do
	}{
		{v1beta1 + `"user": "bob", "namespace": "*", "resource": "*", "apiGroup": "*"}}`, []request.Info{pods, deletion, node}, 0},
		{v1beta1 + `"user": "bob", "namespace": "*", "resource": "*", "apiGroup": "*", "readonly": true}}`, []request.Info{pods, node}, 0},
		{v1beta1 + `"user": "bob", "namespace": "one", "resource": "pods"}}`, []request.Info{pods}, 0},
		{v1beta1 + `"user": "bob", "resource": "nodes"}}`, []request.Info{node}, 0},
		{v1beta1 + `"user": "bob", "group": "team", "nonResourcePath": "/logs/*"}}`, []request.Info{logs}, 0},
		{v1beta1 + `"user": "bob", "group": "others", "nonResourcePath": "*"}}`, nil, 0},
		{v1beta1 + `"user": "ann", "nonResourcePath": "*"}}`, nil, 0},
		{v1beta1 + `"user": "*", "nonResourcePath": "*"}}`, []request.Info{logs, version}, 0},
		{v1beta1 + `"group": "system:unauthenticated", "nonResourcePath": "/version"}}`, nil, 1},
		{v1beta1 + `"nonResourcePath": "*"}}`, nil, 0},
		{`{"user": "bob"}`, all, 0},
		{`{}`, all, 0},
		{`{"user": "*", "readonly": true, "namespace": "one"}`, []request.Info{pods}, 0},
		{`{"group": "team", "resource": "deployments"}`, []request.Info{deletion}, 0},
		{`{"apiVersion": "v9", "kind": "Policy", "spec": {"user": "ann"}}`, all, 0},
	} {
		policies, err := load(t, "# a comment\n\n  \n"+tt.line)
		if err != nil {
			t.Fatal(err)
		}
		var got []request.Info
		unknown := 0
		for _, info := range all {
			if decision, _, _ := policies.Authorize(t.Context(), &authz.Attributes{User: bob, Info: info}); decision == authz.Allow {
				got = append(got, info)
			}
			if decision, reason, _ := policies.Authorize(t.Context(), &authz.Attributes{User: anonymous, Info: info}); decision == authz.Allow {
				unknown++
			} else if reason != "No policy matched." {
				t.Errorf("%s: %s", tt.line, reason)
			}
		}
		if !reflect.DeepEqual(got, tt.bob) || unknown != tt.unknown {
			t.Errorf("%s\n got %v, %d\nwant %v, %d", tt.line, got, unknown, tt.bob, tt.unknown)
		}
	}
}

func TestRulesFor(t *testing.T) {
	policies, err := load(t, `{"user": "bob", "namespace": "one", "resource": "pods", "readonly": true}
{"user": "bob", "namespace": "two"}
{"user": "bob"}
`)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"*"}
	want := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch"}, APIGroups: all, Resources: []string{"pods"}},
		{Verbs: all, APIGroups: all, Resources: all},
		{Verbs: all, NonResourceURLs: all},
	}
	got, incomplete, err := authz.RulesFor(t.Context(), policies, &request.User{Name: "bob"}, "one")
	if !reflect.DeepEqual(got, want) || incomplete || err != nil {
		t.Errorf("%v, %v, %v", got, incomplete, err)
	}
}

// The error for an unreadable line begins with the absolute path of the file.
func TestLoad(t *testing.T) {
	if _, err := load(t, "# one\n{\"user\": 1}\n"); err == nil || !filepath.IsAbs(err.Error()[len("error reading policy file "):]) {
		t.Errorf("%v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
