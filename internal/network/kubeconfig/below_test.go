package kubeconfig_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// A kubeconfig below a server has the credentials of the one in use, also those in files and of programs, from
// any folder.
func TestBelowOfEachCredential(t *testing.T) {
	url, ca := server(t)
	dir := t.TempDir()
	write(t, dir, "ca.crt", string(ca))
	write(t, dir, "token", "of-a-file\n")
	if err := os.WriteFile(filepath.Join(dir, "giver"), []byte(giver), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config", fmt.Sprintf(`
current-context: token
clusters:
- {name: data, cluster: {server: "%s/", certificate-authority-data: %s}}
- {name: file, cluster: {server: "%[1]s", certificate-authority: ca.crt}}
users:
- {name: token, user: {token: secret}}
- {name: file, user: {tokenFile: token}}
- {name: basic, user: {username: a, password: b}}
- {name: program, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./giver, interactiveMode: Never, env: [{name: PREFIX, value: t}]}}}
- {name: other, user: {token: of-another-user}}
contexts:
- {name: token, context: {cluster: data, user: token, namespace: prod}}
- {name: file, context: {cluster: file, user: file}}
- {name: basic, context: {cluster: file, user: basic}}
- {name: program, context: {cluster: file, user: program}}
`, url, base64.StdEncoding.EncodeToString(ca)))
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", "config") // of the folder
	for _, tt := range []struct {
		name      string
		o         kubeconfig.Options
		want      string
		namespace string
	}{
		{"a token", kubeconfig.Options{}, "as Bearer secret", "prod"},
		{"files", kubeconfig.Options{Context: "file"}, "as Bearer of-a-file", "default"},
		{"a password", kubeconfig.Options{Context: "basic"}, "as Basic YTpi", "default"},
		{"a program", kubeconfig.Options{Context: "program"}, "as Bearer t1", "default"},
		{"flags", kubeconfig.Options{Server: url, Token: "mine", CAFile: "ca.crt"}, "as Bearer mine", "prod"},
	} {
		text, err := kubeconfig.Below(tt.o, "fork-x", "/forks/x")
		if err != nil {
			t.Fatal(tt.name, err)
		}
		if strings.Contains(string(text), "of-another-user") {
			t.Errorf("%s: another user is in the file", tt.name)
		}
		o := kubeconfig.Options{Files: []string{write(t, t.TempDir(), "config", string(text))}}
		if got := asked(o); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		config, err := kubeconfig.Find(o)
		if err != nil || config.URL != url+"/forks/x" || config.Namespace != tt.namespace {
			t.Errorf("%s: %+v, %v", tt.name, config, err)
		}
		known, err := kubeconfig.Known(o)
		if err != nil || fmt.Sprint(known) != "{[fork-x] [fork-x] [fork-x]}" {
			t.Errorf("%s: %v, %v", tt.name, known, err)
		}
	}
	if _, err := kubeconfig.Below(kubeconfig.Options{Context: "gone"}, "x", "/forks/x"); err == nil {
		t.Error("a context that is missing has a kubeconfig")
	}
}
