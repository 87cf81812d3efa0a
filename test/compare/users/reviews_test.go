package users

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// granted are the roles of bob and of the group devs.
var granted = []struct{ path, body string }{
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles", `{metadata: {name: reader}, rules: [{apiGroups: [''], resources: [pods, pods/log], verbs: [get, list]}, {nonResourceURLs: [/logs/*], verbs: [get]}]}`},
	{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{metadata: {name: devs}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: devs}]}`},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{metadata: {name: bob}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]}`},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{metadata: {name: broken}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gone}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]}`},
}

// Paths of the reviews.
const (
	ofAccess = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	ofLocal  = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
	ofOwn    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	ofRules  = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	ofToken  = "/apis/authentication.k8s.io/v1/tokenreviews"
)

// reviews are requests: the path, the body in YAML, and the user whom the administrator impersonates.
var reviews = []struct{ path, body, as string }{
	{ofAccess, `{}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get, resource: pods, namespace: a}}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get, resource: pods, namespace: default}}}`, ""},
	{ofAccess, `{spec: {user: bob, groups: [devs], resourceAttributes: {verb: get, resource: pods, namespace: default}}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get, resource: pods, subresource: log, name: p, namespace: default}}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get, resource: pods, subresource: exec, namespace: default}}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get, group: apps, resource: pods, namespace: default}}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: '*', group: '*', version: '*', resource: '*', namespace: default}}}`, ""},
	{ofAccess, `{spec: {user: eve, resourceAttributes: {verb: get, resource: pods, namespace: default}}}`, ""},
	{ofAccess, `{spec: {groups: [devs], resourceAttributes: {verb: list, resource: pods}}}`, ""},
	{ofAccess, `{spec: {user: '', groups: [], resourceAttributes: {verb: list, resource: pods}}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get}, nonResourceAttributes: {path: /, verb: get}}}`, ""},
	{ofAccess, `{metadata: {name: x}, spec: {user: bob, nonResourceAttributes: {path: /healthz, verb: get}}}`, ""},
	{ofAccess, `{metadata: {namespace: default}, spec: {user: bob, nonResourceAttributes: {path: /healthz, verb: get}}}`, ""},
	{ofAccess, `{spec: {groups: ['system:masters'], uid: u, extra: {a: [b]}, nonResourceAttributes: {path: /healthz, verb: get}}}`, ""},
	{ofAccess, `{spec: {groups: ['system:authenticated'], nonResourceAttributes: {path: /healthz, verb: get}}}`, ""},
	{ofAccess, `{spec: {groups: [devs], nonResourceAttributes: {path: /logs/a/b, verb: get}}}`, ""},
	{ofAccess, `{spec: {groups: [devs], nonResourceAttributes: {path: /logs, verb: get}}}`, ""},
	{ofAccess, `{spec: {user: x, resourceAttributes: {verb: list, resource: pods, fieldSelector: {rawSelector: '=', requirements: [{key: '', operator: In}]}, labelSelector: {}}}}`, ""},
	{ofAccess, `{spec: {user: x, resourceAttributes: {verb: list, resource: pods, fieldSelector: {rawSelector: a}, labelSelector: {requirements: [{key: a, operator: In, values: [b]}, {key: a, operator: Foo}]}}}}`, ""},
	{ofAccess, `{spec: {user: x, resourceAttributes: {verb: list, resource: pods, labelSelector: {rawSelector: 'a in (b)'}}}}`, ""},
	{ofAccess, `{kind: TokenReview, spec: {user: x}}`, ""},
	{ofAccess, `{spec: {user: 7}}`, ""},
	{ofAccess, `{spec: {user: x, unknown: 1, resourceAttributes: {verb: get}}}`, ""},
	{ofAccess + "?fieldValidation=Strict", `{spec: {user: x, unknown: 1, resourceAttributes: {verb: get}}}`, ""},
	{ofAccess + "?dryRun=All", `{spec: {user: bob, resourceAttributes: {verb: get, resource: pods, namespace: default}}}`, ""},
	{ofAccess + "?dryRun=Some", `{spec: {user: bob}}`, ""},
	{ofAccess, `{spec: {user: bob, resourceAttributes: {verb: get}}}`, "bob"},

	{ofLocal, `{spec: {user: x, resourceAttributes: {verb: list, resource: pods}}}`, ""},
	{ofLocal, `{spec: {user: bob, resourceAttributes: {namespace: default, verb: list, resource: pods}}}`, ""},
	{ofLocal, `{spec: {user: x, resourceAttributes: {namespace: other, verb: list, resource: pods}}}`, ""},
	{ofLocal, `{metadata: {namespace: other}, spec: {user: x, resourceAttributes: {namespace: default, verb: list, resource: pods}}}`, ""},
	{ofLocal, `{spec: {user: x, nonResourceAttributes: {verb: list}}}`, ""},
	{strings.Replace(ofLocal, "default", "nope", 1), `{spec: {user: x, resourceAttributes: {namespace: nope, verb: list, resource: pods}}}`, ""},

	{ofOwn, `{spec: {}}`, ""},
	{ofOwn, `{spec: {resourceAttributes: {verb: list, resource: pods}}}`, ""},
	{ofOwn, `{spec: {resourceAttributes: {verb: list, resource: pods, namespace: default}}}`, "bob"},
	{ofOwn, `{spec: {resourceAttributes: {verb: list, resource: pods}}}`, "bob"},
	{ofOwn, `{spec: {nonResourceAttributes: {verb: get, path: /version}}}`, "bob"},
	{ofOwn + "?dryRun=All", `{metadata: {generateName: x}, spec: {resourceAttributes: {verb: list, resource: pods}}}`, ""},

	{ofRules, `{spec: {namespace: default}}`, ""},
	{ofRules, `{spec: {namespace: default}}`, "bob"},
	{ofRules, `{spec: {namespace: other}}`, "bob"},
	{ofRules, `{spec: {namespace: default}}`, "eve"},
	{ofRules, `{metadata: {name: x}, spec: {}}`, ""},

	{selfReviews, `{metadata: {name: x, labels: {a: b}}}`, ""},
	{selfReviews, `{}`, "bob"},
	{selfReviews, `{}`, "system:serviceaccount:default:robot"},

	{ofToken, `{}`, ""},
	{ofToken, `{spec: {token: nope}}`, ""},
	{ofToken, `{spec: {token: a b}}`, ""},
	{ofToken, `{spec: {token: hush}}`, ""},
	{ofToken, `{metadata: {name: x}, spec: {token: hush, audiences: [a, 'https://localhost']}}`, ""},
	{ofToken, `{spec: {token: hush, audiences: [a]}}`, ""},
	{ofToken, `{spec: {token: hush}}`, "bob"},
	{ofToken, `[]`, ""},
	{ofToken, ``, ""},
}

// TokenReviews and access reviews get the same responses. Invalid ones get the same errors.
func TestReviews(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Ours: []string{"--service-account-issuer=https://localhost"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	post := func(c *wire.Client, path, body, as string) *wire.Answer {
		data, err := yaml.YAMLToJSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if body == "" {
			data = nil
		}
		header := []wire.Field{{Name: "Content-Type", Value: "application/json"}}
		if as != "" {
			header = append(header, wire.Field{Name: "Impersonate-User", Value: as})
		}
		return c.Do(t.Context(), wire.Step{Method: "POST", Path: path, Header: header, Body: data})
	}
	sides := [2]*wire.Client{p.Theirs, p.Ours}
	for _, g := range granted {
		for _, c := range sides {
			if a := post(c, g.path, g.body, ""); a.Code != 201 {
				t.Fatalf("%s: %d %s", g.path, a.Code, a.Body)
			}
		}
	}
	judges := [2]*judge.Server{judge.NewServer("reviews"), judge.NewServer("reviews")}
	for _, r := range reviews {
		var said [2]*judge.Normal
		for i, c := range sides {
			body := strings.ReplaceAll(r.body, "hush", c.Token())
			a := post(c, r.path, body, r.as)
			a.Body = settled(a.Body, c.Token())
			said[i] = judges[i].Normal(a)
		}
		for _, d := range judge.Compare(said[0], said[1]) {
			t.Errorf("%s as %q\n%s: %s\n\tKubernetes %s\n\tanykind    %s", r.path, r.as, r.body, d.Place, d.Theirs, d.Ours)
		}
	}
	t.Logf("%d reviews compared", len(reviews))
}

// oneOfSeveral matches a reason that may name either of two bindings with the same permission.
var oneOfSeveral = regexp.MustCompile(`ClusterRoleBinding \\"system:(discovery|public-info-viewer)\\" of ClusterRole \\"system:(discovery|public-info-viewer)\\"`)

var timeInText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// settled returns a response without variable values: tokens, times in messages, the order of rules,
// and the binding in a reason.
func settled(body []byte, token string) []byte {
	body = timeInText.ReplaceAll([]byte(strings.ReplaceAll(string(body), token, "TOKEN")), []byte("2026-01-01T00:00:00Z"))
	body = oneOfSeveral.ReplaceAll(body, []byte("one of the bindings"))
	var review map[string]any
	if json.Unmarshal(body, &review) != nil {
		return body
	}
	status, _ := review["status"].(map[string]any)
	for _, name := range []string{"resourceRules", "nonResourceRules"} {
		if rules, ok := status[name].([]any); ok {
			text := func(v any) string { data, _ := json.Marshal(v); return string(data) }
			slices.SortFunc(rules, func(a, b any) int { return cmp.Compare(text(a), text(b)) })
		}
	}
	body, _ = json.Marshal(review)
	return body
}
