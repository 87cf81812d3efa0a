package kubeconfig_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// server starts a server that answers with the user of a request.
func server(t *testing.T) (url string, ca []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asked returns the server's answer to a client of the options, or the error.
func asked(o kubeconfig.Options) string {
	config, err := kubeconfig.Find(o)
	if err != nil {
		return err.Error()
	}
	client := config.Client()
	defer client.CloseIdleConnections()
	response, err := client.Get(config.URL + "/x")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return "as " + string(data)
}

func TestFind(t *testing.T) {
	url, ca := server(t)
	dir := t.TempDir()
	write(t, dir, "ca.crt", string(ca))
	write(t, dir, "token", "of-a-file\n")
	one := write(t, dir, "one", fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: here, cluster: {server: %s/, certificate-authority-data: %s}}
- {name: relative, cluster: {server: %[1]s, certificate-authority: ca.crt}}
users:
- {name: me, user: {token: secret}}
- {name: file, user: {tokenFile: token, token: old}}
- {name: basic, user: {username: a, password: b}}
- {name: program, user: {auth-provider: {name: gcp}}}
- {name: broken, user: {client-certificate-data: eA==, client-key-data: eA==}}
contexts:
- {name: here, context: {cluster: here, user: me}}
- {name: relative, context: {cluster: relative, user: file}}
- {name: basic, context: {cluster: here, user: basic}}
- {name: program, context: {cluster: here, user: program}}
- {name: broken, context: {cluster: here, user: broken}}
- {name: userless, context: {cluster: here, user: gone}}
- {name: nowhere, context: {cluster: gone, user: me}}
`, url, base64.StdEncoding.EncodeToString(ca)))
	two := write(t, dir, "two", fmt.Sprintf(`
current-context: insecure
clusters: [{name: insecure, cluster: {server: %s, insecure-skip-tls-verify: true}}]
users: [{name: me, user: {token: another}}]
contexts: [{name: insecure, context: {cluster: insecure, user: me}}]
`, url))
	odd := write(t, dir, "odd", "clusters: 7\n")
	t.Setenv("HOME", dir)
	for _, tt := range []struct {
		name string
		env  string
		o    kubeconfig.Options
		want string
	}{
		{"the current context", one, kubeconfig.Options{}, "as Bearer secret"},
		{"files before the environment", odd, kubeconfig.Options{Files: []string{one}}, "as Bearer secret"},
		{"another context, files from its folder", one, kubeconfig.Options{Context: "relative"}, "as Bearer of-a-file"},
		{"a password", one, kubeconfig.Options{Context: "basic"}, "as Basic YTpi"},
		{"a user that is not there", one, kubeconfig.Options{Context: "userless"}, "as "},
		{"two files: the first is right", two + ":" + one, kubeconfig.Options{}, "as Bearer another"},
		{"two files: contexts of both", one + ":" + two, kubeconfig.Options{Context: "insecure"}, "as Bearer secret"},
		{"a file that is not there", one + ":" + filepath.Join(dir, "gone"), kubeconfig.Options{}, "as Bearer secret"},
		{"a token", one, kubeconfig.Options{Context: "basic", Token: "mine"}, "as Bearer mine"},
		{"no file at all", filepath.Join(dir, "gone"), kubeconfig.Options{Server: url, CAFile: filepath.Join(dir, "ca.crt"), Token: "t"}, "as Bearer t"},
		{"any certificate", filepath.Join(dir, "gone"), kubeconfig.Options{Server: url, Insecure: true}, "as "},

		{"nothing", "", kubeconfig.Options{}, "no server: set KUBECONFIG, --kubeconfig or --server"},
		{"a file that was asked for", "", kubeconfig.Options{Files: []string{filepath.Join(dir, "gone")}}, "no such file"},
		{"no YAML of this sort", odd, kubeconfig.Options{}, "odd: "},
		{"no such context", one, kubeconfig.Options{Context: "x"}, `no context "x"`},
		{"no such cluster", one, kubeconfig.Options{Context: "nowhere"}, `no cluster "gone"`},
		{"an auth-provider", one, kubeconfig.Options{Context: "program"}, "auth-provider is not supported"},
		{"no certificate", one, kubeconfig.Options{Context: "broken"}, "client certificate and key: "},
		{"no URL", one, kubeconfig.Options{Server: "here:1"}, `server is "here:1": want a URL`},
		{"an unknown authority", "", kubeconfig.Options{Server: url}, "certificate signed by unknown authority"},
	} {
		t.Setenv("KUBECONFIG", tt.env)
		got := asked(tt.o)
		if strings.HasPrefix(tt.want, "as ") && got != tt.want || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The kubeconfig for a path below a server needs no other file, and has the same credentials.
func TestBelow(t *testing.T) {
	url, ca := server(t)
	dir := t.TempDir()
	write(t, dir, "ca.pem", string(ca))
	write(t, dir, "token", "secret")
	file := write(t, dir, "config", `
current-context: one
clusters: [{name: c, cluster: {server: `+url+`/, certificate-authority: ca.pem}}]
users: [{name: u, user: {tokenFile: token, as: jane}}]
contexts: [{name: one, context: {cluster: c, user: u, namespace: team}}, {name: two, context: {cluster: none}}]
`)
	data, err := kubeconfig.Below(kubeconfig.Options{Files: []string{file}}, "try", "/forks/try")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := write(t, t.TempDir(), "config", string(data))
	found, err := kubeconfig.Find(kubeconfig.Options{Files: []string{elsewhere}})
	if err != nil || found.URL != url+"/forks/try" || found.Namespace != "team" {
		t.Fatalf("%+v, %v", found, err)
	}
	if got, want := asked(kubeconfig.Options{Files: []string{elsewhere}}), asked(kubeconfig.Options{Files: []string{file}}); got != want {
		t.Errorf("a request has %s, want %s", got, want)
	}
	if _, err := kubeconfig.Below(kubeconfig.Options{Files: []string{file}, Context: "two"}, "try", "/forks/try"); err == nil {
		t.Error("a context without a cluster has a kubeconfig")
	}
}
