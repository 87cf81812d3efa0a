package app

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/network/cluster/clustertest"
)

// reviewing makes a cluster accept the token of jane, who may list roses. While fails is set, it
// responds with an error.
func reviewing(t *testing.T, s *clustertest.Server, asked *int, fails *bool) {
	t.Helper()
	answer := func(status func(spec map[string]any) map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			*asked++
			var review map[string]any
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			if *fails {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			review["status"] = status(review["spec"].(map[string]any))
			_ = json.NewEncoder(w).Encode(review) // the client may be gone
		}
	}
	s.Answer(tokenReviews, answer(func(spec map[string]any) map[string]any {
		return map[string]any{"authenticated": spec["token"] == "janes", "user": map[string]any{"username": "jane"}}
	}))
	s.Answer("/apis/authorization.k8s.io/v1/subjectaccessreviews", answer(func(spec map[string]any) map[string]any {
		r, _ := spec["resourceAttributes"].(map[string]any)
		return map[string]any{"allowed": spec["user"] == "jane" && r["resource"] == "crontabs" && r["verb"] == "list"}
	}))
}

// The cluster authenticates and authorizes, with cached answers. A right that it does not grant is
// denied.
func TestDelegation(t *testing.T) {
	cluster := clustertest.Start(t)
	var asked int
	var fails bool
	reviewing(t, cluster, &asked, &fails)
	file := cluster.Kubeconfig()
	everywhere := true
	a := start(t, Options{
		CRDs:           write(t, filepath.Join(t.TempDir(), "crd.yaml"), []byte(crontabFile)),
		Authentication: Authentication{Anonymous: &everywhere},
		Cluster: Cluster{
			AuthenticationFile: file, TokenTTL: DelegationTTL,
			Authorization: chain.Delegation{File: file, AuthorizedTTL: DelegationTTL, UnauthorizedTTL: DelegationTTL, AlwaysAllowPaths: []string{"/healthz"}},
		},
	})
	defer stop(t, a)
	const path = "/apis/stable.example.com/v1/crontabs"
	check := func(what, token, at string, code, questions int) {
		t.Helper()
		before := asked
		r, err := http.NewRequest("GET", a.URL()+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client(t, a, nil).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != code || asked-before != questions {
			t.Errorf("%s: %d after %d questions, want %d after %d", what, response.StatusCode, asked-before, code, questions)
		}
	}
	check("jane", "janes", path, 200, 2)
	check("jane again", "janes", path, 200, 0)
	check("what jane may not do", "janes", path+"?watch=true", 403, 1)
	check("an unknown token", "toms", path, 401, 1)
	check("the anonymous user", "", path, 403, 1)
	check("whether it is well", "", "/healthz", 200, 0)
	fails = true
	check("jane, while reviews fail", "janes", path, 200, 0)
	check("another path, while reviews fail", "janes", "/apis", 500, 1)
	check("another token, while reviews fail", "anns", path, 401, 1)
	if code, body := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+path, "", ""); code != 200 {
		t.Errorf("the administrator: %d %s", code, body)
	}
}

// Errors of namespaces and of conflicting options.
func TestClusterErrors(t *testing.T) {
	file := clustertest.Start(t).Kubeconfig()
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"no such file", Options{Cluster: Cluster{AuthenticationFile: "/none"}}, "no such file"},
		{"no pod", Options{Cluster: Cluster{File: "InClusterConfig"}}, "unable to load in-cluster configuration"},
		{"published nowhere", Options{Cluster: Cluster{Service: "a/b"}}, "--publish-as needs --cluster-kubeconfig"},
		{"no Service", Options{Cluster: Cluster{File: file, Service: "a"}}, "want NAMESPACE/NAME"},
		{"two deciders", Options{Cluster: Cluster{Authorization: chain.Delegation{File: file}}, Authorization: Authorization{Flags: chain.Flags{Modes: []string{"RBAC"}}}}, "can not be specified"},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		a, err := Start(t.Context(), tt.o)
		if err == nil {
			stop(t, a)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}
