package kubeconfig_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// Each option overrides the content of files.
func TestOverride(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var said []string
		for name, values := range r.Header {
			if strings.HasPrefix(name, "Impersonate") || name == "Authorization" || name == "Accept-Encoding" {
				said = append(said, name+"="+strings.Join(values, ","))
			}
		}
		slices.Sort(said)
		fmt.Fprint(w, strings.Join(said, " "))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	file := write(t, dir, "config", fmt.Sprintf(`
current-context: one
clusters:
- {name: one, cluster: {server: %s, insecure-skip-tls-verify: true, disable-compression: true}}
- {name: gone, cluster: {server: "https://127.0.0.1:1"}}
- {name: named, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true, disable-compression: true, tls-server-name: other.example}}
users:
- {name: me, user: {tokenFile: token}}
- {name: you, user: {token: yours}}
- {name: boss, user: {token: mine, as: jane, as-groups: [a, b]}}
contexts:
- {name: one, context: {cluster: one, user: me}}
- {name: two, context: {cluster: gone, user: you}}
`, s.URL))
	write(t, dir, "token", "of-a-file")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, tt := range []struct {
		name string
		o    kubeconfig.Options
		want string
	}{
		{"nothing", kubeconfig.Options{}, "Authorization=Bearer of-a-file"},
		{"another user", kubeconfig.Options{User: "you"}, "Authorization=Bearer yours"},
		{"another cluster", kubeconfig.Options{Context: "two", Cluster: "one"}, "Authorization=Bearer yours"},
		{"a token before a file of one", kubeconfig.Options{Token: "flag"}, "Authorization=Bearer flag"},
		{"another server", kubeconfig.Options{Cluster: "named", Server: s.URL}, "Authorization=Bearer of-a-file"},
		{"impersonation", kubeconfig.Options{User: "you", As: "jane", AsUID: "7", AsGroups: []string{"a", "b"}, AsExtra: map[string][]string{"example.com/x": {"1", "2"}}},
			"Authorization=Bearer yours Impersonate-Extra-Example.com%2fx=1,2 Impersonate-Group=a,b Impersonate-Uid=7 Impersonate-User=jane"},
		{"as the file says", kubeconfig.Options{User: "boss"}, "Authorization=Bearer mine Impersonate-Group=a,b Impersonate-User=jane"},
		{"as the file says, with other groups", kubeconfig.Options{User: "boss", AsGroups: []string{"c"}}, "Authorization=Bearer mine Impersonate-Group=c Impersonate-User=jane"},
		{"impersonated groups without a user", kubeconfig.Options{AsGroups: []string{"c"}}, "but no user: set --as"},
		{"no such cluster", kubeconfig.Options{Cluster: "x"}, `no cluster "x"`},
		{"no such user", kubeconfig.Options{User: "x"}, `no user "x"`},
		{"a proxy that is not there", kubeconfig.Options{Proxy: "http://127.0.0.1:1"}, "proxyconnect tcp"},
		{"an authority in place of none", kubeconfig.Options{CAFile: write(t, dir, "ca", "no certificate")}, "certificate-authority has no PEM certificate"},
		{"another name of the server", kubeconfig.Options{TLSServerName: "example.com", CAFile: ""}, "Authorization=Bearer of-a-file"},
	} {
		tt.o.Files = []string{file}
		if got := strings.TrimPrefix(asked(tt.o), "as "); got != tt.want && !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A request ends at the timeout.
func TestTimeout(t *testing.T) {
	ends := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ends:
		}
	}))
	defer s.Close()
	defer close(ends)
	t.Setenv("KUBECONFIG", os.DevNull)
	if got := asked(kubeconfig.Options{Server: s.URL, Timeout: time.Millisecond}); !strings.Contains(got, "deadline exceeded") && !strings.Contains(got, "Client.Timeout exceeded") {
		t.Error(got)
	}
}

func TestParseTimeout(t *testing.T) {
	for s, want := range map[string]time.Duration{"0": 0, "30": 30 * time.Second, "2m": 2 * time.Minute} {
		if got, err := kubeconfig.ParseTimeout(s); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", s, got, err, want)
		}
	}
	if _, err := kubeconfig.ParseTimeout("soon"); err == nil {
		t.Error("soon is a time")
	}
}

func TestKnown(t *testing.T) {
	file := write(t, t.TempDir(), "config", `
clusters: [{name: b, cluster: {}}, {name: a, cluster: {}}]
users: [{name: u, user: {}}]
contexts: [{name: z, context: {}}, {name: x, context: {}}]
`)
	got, err := kubeconfig.Known(kubeconfig.Options{Files: []string{file}})
	if err != nil || fmt.Sprint(got) != "{[x z] [a b] [u]}" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := kubeconfig.Known(kubeconfig.Options{Files: []string{filepath.Join(t.TempDir(), "gone")}}); err == nil {
		t.Error("a file that is not there has names")
	}
}
