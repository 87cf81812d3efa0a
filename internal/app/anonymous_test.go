package app

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authz/chain"
)

// By default, a request without credentials may read only health and version. A flag, a file or an
// open server, as kube-apiserver, changes that.
func TestAnonymous(t *testing.T) {
	yes, no := true, false
	says := func(anonymous string) string {
		return write(t, filepath.Join(t.TempDir(), "authentication.yaml"), []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"+anonymous))
	}
	for _, test := range []struct {
		name             string
		authentication   Authentication
		version, objects int
	}{
		{"not said", Authentication{}, 200, 401},
		{"allowed", Authentication{Anonymous: &yes}, 200, 403},
		{"not allowed", Authentication{Anonymous: &no}, 401, 401},
		{"not said by a file", Authentication{ConfigFile: says("jwt: []")}, 200, 401},
		{"open", Authentication{Open: true}, 200, 403},
		{"open, not allowed", Authentication{Open: true, Anonymous: &no}, 401, 401},
		{"open, not said by a file", Authentication{Open: true, ConfigFile: says("jwt: []")}, 200, 403},
		{"open, not allowed by a file", Authentication{Open: true, ConfigFile: says("anonymous: {enabled: false}")}, 401, 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := start(t, Options{Authentication: test.authentication})
			defer stop(t, a)
			anonymous := client(t, a, nil)
			for path, want := range map[string]int{"/version": test.version, "/readyz": test.version, "/api/v1/namespaces": test.objects, "/apis": test.objects} {
				code, body := ask(t, anonymous, "GET", a.URL()+path, "", "")
				if code != want {
					t.Errorf("%s: answered %d %s, want %d", path, code, body, want)
				}
			}
		})
	}
}

// AlwaysAllow applies to authenticated users only, unless a file enables anonymous requests.
func TestAnonymousAndAlwaysAllow(t *testing.T) {
	yes, no := true, false
	file := write(t, filepath.Join(t.TempDir(), "authentication.yaml"), []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n"))
	for _, test := range []struct {
		name           string
		authentication Authentication
		code           int
		warned         bool
	}{
		{"not said", Authentication{}, 401, true},
		{"allowed", Authentication{Anonymous: &yes}, 401, true},
		{"open", Authentication{Open: true}, 401, true},
		{"not allowed", Authentication{Anonymous: &no}, 401, false},
		{"allowed by a file", Authentication{ConfigFile: file}, 200, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			a := start(t, Options{
				Authentication: test.authentication, Authorization: Authorization{Flags: chain.Flags{Modes: []string{chain.AlwaysAllow}}},
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			anonymous := client(t, a, nil)
			for _, path := range []string{"/readyz", "/api/v1/namespaces"} {
				if code, body := ask(t, anonymous, "GET", a.URL()+path, "", ""); code != test.code {
					t.Errorf("%s: answered %d %s, want %d", path, code, body, test.code)
				}
			}
			stop(t, a)
			if warned := strings.Contains(log.String(), "AnonymousAuth is not allowed with the AlwaysAllow authorizer"); warned != test.warned {
				t.Errorf("warned: %v, want %v", warned, test.warned)
			}
		})
	}
}
