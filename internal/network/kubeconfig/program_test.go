package kubeconfig_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// giver is a plugin that returns tokens: t1, then t2 and so on. It records its input.
const giver = `#!/bin/sh
cd "$(dirname "$0")"
echo "$KUBERNETES_EXEC_INFO" >> told
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s%s"%s}}' "$PREFIX" "$(wc -l < told | tr -d ' ')" "$1"
`

// A user with exec authenticates with the plugin's credentials. The plugin runs again when they
// expire or are rejected.
func TestProgram(t *testing.T) {
	var refuse string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == refuse {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	for _, tt := range []struct {
		name, exec, refuse string
		token              string // of the options
		want               []string
	}{
		{"a token that does not expire", "command: ./giver, interactiveMode: Never", "", "", []string{"Bearer t1", "Bearer t1"}},
		{"one that has expired", `command: ./giver, interactiveMode: Never, args: [',"expirationTimestamp":"2020-01-01T00:00:00Z"']`, "", "", []string{"Bearer t1", "Bearer t2"}},
		{"one that is refused", "command: ./giver, interactiveMode: IfAvailable", "Bearer t1", "", []string{"Bearer t1", "Bearer t2", "Bearer t2"}},
		{"a token of the options", "command: ./giver, interactiveMode: Never", "", "mine", []string{"Bearer mine"}},
		{"not installed", "command: nosuchprogram, interactiveMode: Never, installHint: get it", "", "", []string{"credentials of nosuchprogram: the command is not installed: get it"}},
		{"no terminal", "command: ./giver, interactiveMode: Always", "", "", []string{"standard input is not a terminal"}},
		{"another version", "command: ./giver, interactiveMode: Never, apiVersion: client.authentication.k8s.io/v1beta1", "", "", []string{"want ExecCredential of client.authentication.k8s.io/v1beta1"}},
		{"no version", "command: ./giver, apiVersion: v1", "", "", []string{"want client.authentication.k8s.io/v1 or"}},
		{"no mode", "command: ./giver", "", "", []string{"want Never, IfAvailable or Always"}},
		{"prints something else", "command: echo, args: [hello], interactiveMode: Never", "", "", []string{"its output is no ExecCredential"}},
		{"fails", "command: 'false', interactiveMode: Never", "", "", []string{"exit status 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "giver"), []byte(giver), 0o700); err != nil {
				t.Fatal(err)
			}
			version := ""
			if !strings.Contains(tt.exec, "apiVersion") {
				version = "apiVersion: client.authentication.k8s.io/v1, "
			}
			file := write(t, dir, "config", fmt.Sprintf(`
current-context: c
clusters: [{name: c, cluster: {server: %s, certificate-authority-data: %s, extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: me}}]}}]
users: [{name: u, user: {exec: {%s%s, provideClusterInfo: true, env: [{name: PREFIX, value: t}]}}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, s.URL, ca, version, tt.exec))
			refuse = tt.refuse
			config, err := kubeconfig.Find(kubeconfig.Options{Files: []string{file}, Token: tt.token})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want[0]) {
					t.Errorf("got %v, want %s", err, tt.want[0])
				}
				return
			}
			client := config.Client()
			defer client.CloseIdleConnections()
			for i, want := range tt.want {
				if got := get(client, config.URL); got != want && !(got != "" && !strings.HasPrefix(want, "Bearer") && strings.Contains(got, want)) {
					t.Errorf("request %d: got %q, want %q", i+1, got, want)
				}
			}
			input, _ := os.ReadFile(filepath.Join(dir, "told"))
			if line, _, _ := strings.Cut(string(input), "\n"); line != "" && (!strings.Contains(line, `"spec":{"interactive":false,"cluster":{`) || !strings.Contains(line, `"config":{"audience":"me"}`) || !strings.Contains(line, s.URL)) {
				t.Errorf("it was told %s", line)
			}
		})
	}
}

func get(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	var said strings.Builder
	if err := response.Write(&said); err != nil {
		return err.Error()
	}
	_, body, _ := strings.Cut(said.String(), "\r\n\r\n")
	return body
}
