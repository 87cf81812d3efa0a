package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// people is an App with users, who have tokens.
type people struct {
	*testing.T
	app    *App
	client *http.Client
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

func startPeople(t *testing.T, o Options) *people {
	t.Helper()
	o.TokenFile = filepath.Join(t.TempDir(), "tokens")
	const users = "ann,ann,1,devs\nbob,bob,2\nroot,root,3,system:masters\n"
	if err := os.WriteFile(o.TokenFile, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &people{T: t, app: start(t, o)}
	p.client = client(t, p.app, nil)
	return p
}

// does sends a request of a user, with an object in YAML, and compares the code and the message of
// the response.
func (p *people) does(who, method, path, document string, code int, message string) string {
	p.Helper()
	body, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		p.Fatal(err)
	}
	if document == "" {
		body = nil
	}
	method, contentType, _ := strings.Cut(method, " ")
	r, err := http.NewRequestWithContext(p.Context(), method, p.app.URL()+path, strings.NewReader(string(body)))
	if err != nil {
		p.Fatal(err)
	}
	if contentType == "" {
		contentType = "json"
	}
	r.Header.Set("Content-Type", "application/"+contentType)
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+who)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	var got json.RawMessage
	_ = json.NewDecoder(answer.Body).Decode(&got)
	var status struct{ Message string }
	_ = json.Unmarshal(got, &status)
	if answer.StatusCode != code || message != "" && status.Message != message {
		p.Errorf("%s: %s %s: %d %s\nwant %d %s", who, method, path, answer.StatusCode, got, code, message)
	}
	return string(got)
}

const (
	asApply    = "PATCH apply-patch+yaml"
	asMerge    = "PATCH merge-patch+json"
	configMaps = "/api/v1/namespaces/default/configmaps"
)

// grant grants rules to bob in the namespace default.
func (p *people) grant(rules string) {
	p.Helper()
	p.does("root", "PUT", rbacPath+"/namespaces/default/roles/r", `{metadata: {name: r}, rules: [`+rules+`]}`, p.code("roles/r"), "")
	p.does("root", "PUT", rbacPath+"/namespaces/default/rolebindings/b", `{metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: bob}]}`, p.code("rolebindings/b"), "")
}

// code returns the code of a successful PUT: 200 for an existing object, else 201.
func (p *people) code(of string) int {
	if code, _ := ask(p.T, p.client, "GET", p.app.URL()+rbacPath+"/namespaces/default/"+of, "root", ""); code == 200 {
		return 200
	}
	return 201
}

// Granted and revoked rights take effect at once.
func TestGrants(t *testing.T) {
	p := startPeople(t, Options{})
	defer stop(t, p.app)
	const refused = `configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default"`
	for range 20 {
		p.does("bob", "GET", configMaps, "", 403, refused)
		p.grant("{apiGroups: [''], resources: [configmaps], verbs: [list]}")
		p.does("bob", "GET", configMaps, "", 200, "")
		p.does("ann", "GET", configMaps, "", 403, "")
		p.does("bob", "GET", "/api/v1/configmaps", "", 403, `configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" at the cluster scope`)
		p.does("root", "DELETE", rbacPath+"/namespaces/default/roles/r", "", 200, "")
		p.does("bob", "GET", configMaps, "", 403, refused+`: rbac: RBAC: role.rbac.authorization.k8s.io "r" not found`)
		p.does("root", "DELETE", rbacPath+"/namespaces/default/rolebindings/b", "", 200, "")
	}
}

// Every action is authorized: each verb, creates by other verbs, and requests that name an object by
// a selector.
func TestVerbs(t *testing.T) {
	p := startPeople(t, Options{})
	defer stop(t, p.app)
	cannot := func(verb, resource, name, group string) string {
		qualified, _, _ := strings.Cut(resource, "/")
		if group != "" {
			qualified += "." + group
		}
		if name != "" {
			qualified += fmt.Sprintf(" %q", name)
		}
		return fmt.Sprintf(`%s is forbidden: User "bob" cannot %s resource %q in API group %q in the namespace "default"`, qualified, verb, resource, group)
	}
	p.grant("{apiGroups: ['', coordination.k8s.io], resources: [configmaps, leases], verbs: [get, patch, update, delete]}, " +
		"{apiGroups: [''], resources: [configmaps], resourceNames: [a], verbs: [list, watch]}, " +
		"{apiGroups: [apps], resources: [deployments/scale], verbs: [get]}, {apiGroups: [apps], resources: [deployments], verbs: [patch]}")

	const document = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
	p.does("bob", asApply, configMaps+"/a?fieldManager=m", document, 403, cannot("create", "configmaps", "a", ""))
	p.does("bob", asApply, configMaps+"/a?fieldManager=m&dryRun=All", document, 403, cannot("create", "configmaps", "a", ""))
	p.does("bob", asMerge, configMaps+"/a", `{data: {a: b}}`, 404, "")
	const lease = `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}}`
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	p.does("bob", "PUT", leases+"/a", lease, 403, cannot("create", "leases", "a", "coordination.k8s.io"))
	p.does("root", "POST", leases, lease, 201, "")
	p.does("bob", asMerge, leases+"/a", "{}", 200, "")
	p.does("root", "POST", configMaps, document, 201, "")
	p.does("bob", asApply, configMaps+"/a?fieldManager=m", document, 200, "")
	p.does("bob", "POST", configMaps, `{metadata: {name: b}}`, 403, cannot("create", "configmaps", "", ""))
	p.does("bob", "POST", configMaps+"?dryRun=All", `{metadata: {name: b}}`, 403, "")

	p.does("bob", "GET", configMaps, "", 403, cannot("list", "configmaps", "", ""))
	p.does("bob", "GET", configMaps+"?fieldSelector=metadata.name%3Da", "", 200, "")
	p.does("bob", "GET", configMaps+"?fieldSelector=metadata.name%3Db", "", 403, cannot("list", "configmaps", "b", ""))
	p.does("bob", "GET", configMaps+"?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Db", "", 403, cannot("watch", "configmaps", "b", ""))
	p.does("bob", "GET", "/api/v1/watch/namespaces/default/configmaps/b", "", 403, cannot("watch", "configmaps", "b", ""))
	p.does("bob", "DELETE", configMaps, "", 403, cannot("deletecollection", "configmaps", "", ""))
	p.does("bob", "DELETE", configMaps+"?fieldSelector=metadata.name%3Da", "", 403, cannot("deletecollection", "configmaps", "", ""))
	p.does("bob", "DELETE", configMaps+"/a", "", 200, "")

	const deployment = "/apis/apps/v1/namespaces/default/deployments/d"
	p.does("bob", "GET", deployment+"/scale", "", 404, "")
	p.does("bob", asMerge, deployment+"/scale", "{}", 403, cannot("patch", "deployments/scale", "d", "apps"))
	p.does("bob", asMerge, deployment+"/status", "{}", 403, cannot("patch", "deployments/status", "d", "apps"))
	p.does("bob", "PATCH", deployment+"/x/y/z", "{}", 403, cannot("patch", "deployments/x", "d", "apps"))

	p.does("bob", "POST", rbacPath+"/namespaces/default/rolebindings", "{}", 403, cannot("create", "rolebindings", "", "rbac.authorization.k8s.io"))
	p.does("bob", "GET", "/api/v1/namespaces/default", "", 403, `namespaces "default" is forbidden: User "bob" cannot get resource "namespaces" in API group "" in the namespace "default"`)
	p.does("bob", "GET", "/apis/rbac.authorization.k8s.io", "", 200, "")
	p.does("", "GET", "/apis/rbac.authorization.k8s.io", "", 401, "Unauthorized")
	p.does("", "GET", "/version", "", 200, "")
	p.does("root", "GET", "/api/v1/watch", "", 500, "")
}

// No verb lets a user escalate rights: by a role, a binding to one, labels that aggregate the role,
// or the token of a stronger account.
func TestEscalationByEachVerb(t *testing.T) {
	p := startPeople(t, Options{})
	defer stop(t, p.app)
	p.grant("{apiGroups: [rbac.authorization.k8s.io], resources: ['*'], verbs: [create, update, patch, get, list]}, {apiGroups: [''], resources: [serviceaccounts], verbs: [get]}")
	p.does("root", "POST", rbacPath+"/clusterrolebindings", `{metadata: {name: c}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: c}, subjects: [{kind: User, name: bob}]}`, 201, "")
	p.does("root", "POST", rbacPath+"/clusterroles", `{metadata: {name: c}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [create, update, patch, get]}]}`, 201, "")
	p.does("root", "POST", rbacPath+"/clusterroles", `{metadata: {name: strong}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}`, 201, "")
	p.does("root", "POST", "/api/v1/namespaces/default/serviceaccounts", `{metadata: {name: strong}}`, 201, "")
	const (
		roles, bindings = rbacPath + "/namespaces/default/roles", rbacPath + "/namespaces/default/rolebindings"
		more            = `rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]`
		role            = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, ` + more + `}`
		binding         = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: strong}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]}`
	)
	p.does("root", "POST", roles, `{metadata: {name: there}, rules: []}`, 201, "")
	for _, tt := range []struct{ method, path, document string }{
		{"POST", roles, role},
		{"POST", roles + "?dryRun=All", role},
		{"PUT", roles + "/x", role},
		{asApply, roles + "/x?fieldManager=m", role},
		{"PUT", roles + "/there", strings.Replace(role, "x", "there", 1)},
		{asApply, roles + "/there?fieldManager=m&force=true", strings.Replace(role, "x", "there", 1)},
		{asMerge, roles + "/there", "{" + more + "}"},
		{"PATCH strategic-merge-patch+json", roles + "/there", "{" + more + "}"},
		{"PATCH json-patch+json", roles + "/there", `[{op: add, path: /rules, value: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}]`},
		{"POST", bindings, binding},
		{"PUT", bindings + "/x", binding},
		{asApply, bindings + "/x?fieldManager=m", binding},
		{asMerge, rbacPath + "/clusterroles/strong", `{metadata: {labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}}`},
		{"POST", rbacPath + "/clusterroles", `{metadata: {name: takes}, rules: [], aggregationRule: {clusterRoleSelectors: [{}]}}`},
		{"POST", "/api/v1/namespaces/default/serviceaccounts/strong/token", `{}`},
	} {
		p.does("bob", tt.method, tt.path, tt.document, 403, "")
	}
	// A subset of own rights may be granted.
	p.does("bob", asMerge, roles+"/there", `{rules: [{apiGroups: [''], resources: [serviceaccounts], verbs: [get]}]}`, 200, "")
}

// The authorization modes. system:masters may do everything in each of them.
func TestModes(t *testing.T) {
	for _, tt := range []struct {
		modes []string
		code  int
		why   string
	}{
		{nil, 403, ""},
		{[]string{AuthorizeByRoles}, 403, ""},
		{[]string{chain.AlwaysAllow}, 200, ""},
		{[]string{AuthorizeByRoles, chain.AlwaysAllow}, 200, ""},
		{[]string{chain.AlwaysDeny, AuthorizeByRoles}, 403, `namespaces is forbidden: User "bob" cannot list resource "namespaces" in API group "" at the cluster scope: alwaysdeny: Everything is forbidden.`},
	} {
		p := startPeople(t, Options{Authorization: Authorization{Flags: chain.Flags{Modes: tt.modes}}})
		p.does("bob", "GET", "/api/v1/namespaces", "", tt.code, tt.why)
		p.does("root", "GET", "/api/v1/namespaces", "", 200, "")
		stop(t, p.app)
	}
	for want, modes := range map[string][]string{
		`authorization-mode "Wish" is not a valid mode`:                        {"Wish"},
		`authorization-mode ["RBAC" "RBAC"] has mode specified more than once`: {"RBAC", "RBAC"},
	} {
		if _, err := Start(t.Context(), Options{Authorization: Authorization{Flags: chain.Flags{Modes: modes}}}); err == nil || err.Error() != want {
			t.Errorf("%v: %v", modes, err)
		}
	}
}

// ABAC policies from a file decide, and list rules.
func TestPolicyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policies")
	text := `{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "bob", "namespace": "*", "resource": "namespaces", "apiGroup": "*", "readonly": true}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := chain.Flags{Modes: []string{chain.ABAC}, PolicyFile: file}
	p := startPeople(t, Options{Authorization: Authorization{Flags: flags}})
	p.does("bob", "GET", "/api/v1/namespaces", "", 200, "")
	p.does("bob", "DELETE", "/api/v1/namespaces/default", "", 403, `namespaces "default" is forbidden: User "bob" cannot delete resource "namespaces" in API group "" in the namespace "default": abac: No policy matched.`)
	p.does("root", "GET", "/api/v1/pods", "", 200, "")
	stop(t, p.app)
	flags.PolicyFile += "x"
	if _, err := Start(t.Context(), Options{Authorization: Authorization{Flags: flags}}); err == nil || err.Error() != "open "+file+"x: no such file or directory" {
		t.Errorf("without the file: %v", err)
	}
}

// A node may read the objects of its pods from the write that binds a pod to it until the pod is
// deleted.
func TestNodes(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("n1,system:node:n1,1,system:nodes\nn2,system:node:n2,2,system:nodes\nroot,root,3,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &people{T: t, app: start(t, Options{TokenFile: tokens, Authorization: Authorization{Flags: chain.Flags{Modes: []string{chain.Node, chain.RBAC}}}})}
	defer stop(t, p.app)
	p.client = client(t, p.app, nil)
	const secrets, pods = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/pods"
	refused := func(who string) string {
		return `secrets "s" is forbidden: User "system:node:` + who + `" cannot get resource "secrets" in API group "" in the namespace "default": node: no relationship found between node '` + who + `' and this object`
	}
	p.does("root", "POST", secrets, "{metadata: {name: s}}", 201, "")
	for range 5 {
		p.does("n1", "GET", secrets+"/s", "", 403, refused("n1"))
		p.does("root", "POST", pods, "{metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c, image: i}], volumes: [{name: v, secret: {secretName: s}}]}}", 201, "")
		p.does("n1", "GET", secrets+"/s", "", 200, "")
		p.does("n2", "GET", secrets+"/s", "", 403, refused("n2"))
		p.does("n1", "GET", secrets+"?fieldSelector=metadata.name=s", "", 200, "")
		p.does("n1", "GET", secrets, "", 403, `secrets is forbidden: User "system:node:n1" cannot list resource "secrets" in API group "" in the namespace "default": node: No Object name found`)
		p.does("n1", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "", 200, "")
		p.does("n1", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2", "", 403, "")
		p.does("root", "DELETE", pods+"/p?gracePeriodSeconds=0", "", 200, "")
	}
	p.does("n1", "GET", "/api/v1/services", "", 200, "")
}

// A configuration file is in force, and its authorizers are asked in order.
func TestAuthorizationConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "authorization.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: AlwaysDeny, name: alwaysdeny}\n- {type: RBAC, name: rbac}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startPeople(t, Options{Authorization: Authorization{ConfigFile: file}})
	p.does("bob", "GET", "/api/v1/nodes", "", 403, `nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope: alwaysdeny: Everything is forbidden.`)
	p.does("root", "GET", "/api/v1/nodes", "", 200, "")
	stop(t, p.app)
	for want, o := range map[string]Authorization{
		"--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined": {ConfigFile: file, Flags: chain.Flags{Given: true}},
		"open " + file + "x: no such file or directory": {ConfigFile: file + "x"},
	} {
		if _, err := Start(t.Context(), Options{Authorization: o}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A start completes the default roles and bindings: it adds missing parts, keeps additional ones,
// and skips objects that are annotated as exempt.
func TestDefaultRoles(t *testing.T) {
	dir := t.TempDir()
	p := startPeople(t, Options{Dir: dir, Controllers: []string{}})
	const roles, bindings = rbacPath + "/clusterroles/", rbacPath + "/clusterrolebindings/"
	revision := func(path string) string {
		t.Helper()
		var o struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal([]byte(p.does("root", "GET", path, "", 200, "")), &o); err != nil {
			t.Fatal(err)
		}
		return o.Metadata.ResourceVersion
	}
	p.does("root", "DELETE", roles+"system:node", "", 200, "")
	p.does("root", asMerge, roles+"system:discovery", `{rules: [{nonResourceURLs: [/extra], verbs: [get]}], metadata: {labels: null}}`, 200, "")
	p.does("root", asMerge, roles+"system:basic-user", `{rules: [], metadata: {annotations: {rbac.authorization.kubernetes.io/autoupdate: "false"}}}`, 200, "")
	p.does("root", asMerge, roles+"admin", `{aggregationRule: {clusterRoleSelectors: [{matchLabels: {mine: "1"}}]}}`, 200, "")
	p.does("root", asMerge, bindings+"system:node-proxier", `{subjects: [{kind: Group, name: extra}]}`, 200, "")
	p.does("root", "DELETE", bindings+"system:kube-dns", "", 200, "")
	p.does("root", "POST", rbacPath+"/clusterrolebindings", `{metadata: {name: system:kube-dns}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: other}}`, 201, "")
	before := revision(roles + "view")
	changed := revision(roles + "system:basic-user")
	stop(t, p.app)

	p = startPeople(t, Options{Dir: dir, Controllers: []string{}})
	defer func() { stop(t, p.app) }()
	for path, parts := range map[string][]string{
		roles + "system:node":                        {`"nodes"`},
		roles + "system:discovery":                   {`"/extra"`, `"/openapi/*"`, `"rbac-defaults"`},
		roles + "system:basic-user":                  {`"rules":null`},
		roles + "admin":                              {`"mine":"1"`, `"rbac.authorization.k8s.io/aggregate-to-admin":"true"`},
		bindings + "system:node-proxier":             {`"extra"`, `"system:kube-proxy"`},
		bindings + "system:kube-dns":                 {`"name":"system:kube-dns"},"subjects"`, `"namespace":"kube-system"`},
		"/readyz/poststarthook/rbac/bootstrap-roles": {},
	} {
		got := p.does("root", "GET", path, "", 200, "")
		got = strings.ReplaceAll(strings.ReplaceAll(got, "\n", ""), " ", "")
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s lacks %s: %s", path, part, got)
			}
		}
	}
	if revision(roles+"view") != before || revision(roles+"system:basic-user") != changed {
		t.Error("what needed no change was written")
	}
}

// Until Kubernetes v1.14 system:public-info-viewer was part of system:discovery. The new binding
// takes over the subjects of the old one, and its exemption from updates.
func TestPublicInfoIsForThoseWhoCouldDiscover(t *testing.T) {
	const discovery, public = rbacPath + "/clusterrolebindings/system:discovery", rbacPath + "/clusterrolebindings/system:public-info-viewer"
	for update, want := range map[string]string{
		"false": `"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"mine"}]`,
		"true":  `"name":"mine"},{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"},{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:unauthenticated"}]`,
	} {
		dir := t.TempDir()
		p := startPeople(t, Options{Dir: dir, Controllers: []string{}})
		p.does("root", asMerge, discovery, `{metadata: {annotations: {a: b, rbac.authorization.kubernetes.io/autoupdate: "`+update+`"}},
			subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: mine}]}`, 200, "")
		p.does("root", "DELETE", public, "", 200, "")
		stop(t, p.app)
		p = startPeople(t, Options{Dir: dir, Controllers: []string{}})
		if got := p.does("root", "GET", public, "", 200, ""); !strings.Contains(got, want) || !strings.Contains(got, `"a":"b"`) {
			t.Errorf("it says %s, want %s", got, want)
		}
		stop(t, p.app)
	}
}

// full is a store that rejects writes to some keys for a while.
type full struct {
	kv.Backend
	until chan struct{}
}

func (f full) Commit(ctx context.Context, w kv.Write) (int64, error) {
	select {
	case <-f.until:
	default:
		if strings.HasPrefix(w.Key, "/registry/clusterroles/") {
			return 0, kv.ErrFull
		}
	}
	return f.Backend.Commit(ctx, w)
}

// A server whose store rejects the default roles starts, is not ready, and creates them later.
func TestDefaultRolesLater(t *testing.T) {
	store := full{memkv.New(memkv.Options{}), make(chan struct{})}
	p := startPeople(t, Options{Backend: store})
	defer stop(t, p.app)
	p.does("root", "GET", "/readyz", "", 500, "")
	p.does("root", "GET", rbacPath+"/clusterroles/cluster-admin", "", 404, "")
	p.does("root", "GET", rbacPath+"/clusterrolebindings/cluster-admin", "", 200, "")
	close(store.until)
	for code := 0; code != 200; {
		code, _ = ask(t, p.client, "GET", p.app.URL()+"/readyz", "root", "")
	}
	p.does("root", "GET", rbacPath+"/clusterroles/cluster-admin", "", 200, "")
}
