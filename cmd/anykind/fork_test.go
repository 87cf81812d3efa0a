package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// forking is a server with the fork x, in which joe changed a ConfigMap. last returns the last write.
func forking(t *testing.T) (url string, last func() string) {
	t.Helper()
	var write atomic.Value
	write.Store("")
	state := func(value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"1"},"data":{"k":%q}}`, value)
	}
	const made = `{"kind":"Fork","apiVersion":"fork.anykind.dev/v1","name":"x","resourceVersion":"7","path":"/forks/x","created":"2026-11-20T08:00:00Z","by":"jane","replayed":{"time":"2026-11-20T08:00:00.5Z","done":false}}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet {
			body, _ := io.ReadAll(r.Body)
			write.Store(r.Method + " " + r.URL.RequestURI() + " " + string(body))
			switch r.URL.Path {
			case "/forks":
				body = []byte(made)
			case "/what/forks":
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = w.Write(body)
			return
		}
		answer, ok := map[string]string{
			"/forks": `{"items":[` + made + `]}`, "/forks/x": made, "/forks/x/api": discovered, "/forks/x/apis": `{"items":[]}`,
			"/forks/x/changes":                        `{"kind":"ChangeList","items":[{"revision":"8","type":"MODIFIED","user":"joe","before":` + state("one") + `,"object":` + state("two") + `}]}`,
			"/api/v1/namespaces/default/configmaps/a": state("one"),
		}[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","code":404,"message":"not found"}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string { return write.Swap("").(string) }
}

func TestFork(t *testing.T) {
	url, last := forking(t)
	const changes = "  configmaps/a in default\n      .data.k: \"one\" → \"two\"\n"
	for _, tt := range []struct {
		args  string
		code  int
		want  string // in stdout and stderr
		write string // start of the last write
	}{
		{"fork x", 0, "fork x of revision 7\nto use it: export KUBECONFIG=", `POST /forks {"name":"x","webhooks":"DryRun"}`},
		{"fork x --as-of 7 --webhooks none --lifetime 1h", 0, "of revision 7", `POST /forks {"name":"x","resourceVersion":"7","webhooks":"None","lifetime":"1h"}`},
		{"fork x --as-of 2026-11-20", 0, "of revision 7", `POST /forks {"name":"x","asOf":"2026-11-20T`},
		{"fork x --as-of 7 --replay", 0, "of revision 7", `POST /forks {"name":"x","resourceVersion":"7","webhooks":"DryRun","replay":{}}`},
		{"fork x --as-of 7 --replay --speed 60 --without-user a,b", 0, "of revision 7", `POST /forks {"name":"x","resourceVersion":"7","webhooks":"DryRun","replay":{"speed":60,"without":["a","b"]}}`},
		{"fork x -o taken", 1, "taken exists: remove it, or choose another file with -o", ""},
		{"fork list", 0, "REVISION", ""},
		{"fork list", 0, "x     7 ", ""},
		{"fork list", 0, "jane  until 2026-11-20T08:00:00Z\n", ""},
		{"fork delete x", 0, "fork x deleted\n", "DELETE /forks/x "},
		{"diff --fork x", 0, changes, ""},
		{"diff --fork y", 1, "not found", ""},
		{"fork merge x", 0, ".data.k: \"one\" → \"two\"\ndry run: nothing is written; --yes writes\n", "PUT /api/v1/namespaces/default/configmaps/a?fieldManager=anykind-merge&dryRun=All "},
		{"fork merge x --yes", 0, "configmaps/a in default updated\n", "PUT /api/v1/namespaces/default/configmaps/a?fieldManager=anykind-merge {"},
		{"fork merge y", 1, "not found", ""},
		{"fork list --server " + url + "/forks/x", 0, "x     7 ", ""},
		{"diff --fork x --server " + url + "/forks/x", 0, changes, ""},
		{"fork merge x --yes --server " + url + "/forks/x", 0, "configmaps/a in default updated\n", "PUT /api/v1/namespaces/default/configmaps/a?fieldManager=anykind-merge {"},
		{"fork y --server " + url + "/what", 1, "the server has no forks", "POST /what/forks "},

		{"fork", exitUsage, "needs the NAME of a fork", ""},
		{"fork x --as-of soon", exitUsage, `--as-of is "soon": want a time`, ""},
		{"fork x --replay", exitUsage, "--replay needs --as-of", ""},
		{"fork x --as-of 7 --replay --speed fast", exitUsage, `--speed is "fast": want a number above 0, such as 60, or max`, ""},
		{"fork x --as-of 7 --replay --speed inf", exitUsage, "want a number above 0", ""},
		{"fork x --as-of 7 --speed 60", exitUsage, "--speed and --without-user need --replay", ""},
		{"fork x --without-user a", exitUsage, "--speed and --without-user need --replay", ""},
		{"fork x --as-of 7 --replay --speed 0", exitUsage, "want a number above 0", ""},
		{"fork x --webhooks all", exitUsage, "want dry-run or none", ""},
		{"fork delete", exitUsage, "needs the NAME of a fork", ""},
		{"fork merge", exitUsage, "needs the NAME of a fork", ""},
		{"diff cm --fork x", exitUsage, "--fork goes without a KIND", ""},
		{"diff --fork x --from 1h", exitUsage, "--fork goes without a KIND", ""},
	} {
		args := strings.Fields(tt.args)
		if !strings.Contains(tt.args, "--server") {
			args = append(args, "--server", url)
		}
		cmd, stderr := command(t, args...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+os.DevNull)
		if err := os.WriteFile(filepath.Join(cmd.Dir, "taken"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := cmd.Output()
		if got := string(out) + stderr.String(); cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(got, tt.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", tt.args, cmd.ProcessState.ExitCode(), tt.code, tt.want, got)
		}
		if got := last(); (tt.write == "") != (got == "") || !strings.HasPrefix(got, tt.write) {
			t.Errorf("%s writes %q, want %q", tt.args, got, tt.write)
		}
		info, err := os.Stat(filepath.Join(cmd.Dir, "x.kubeconfig"))
		if written := strings.HasPrefix(string(out), "fork x of revision"); written != (err == nil) || written && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the kubeconfig: %v, %v", tt.args, info, err)
		}
		if _, err := os.Stat(filepath.Join(cmd.Dir, "y.kubeconfig")); err == nil {
			t.Errorf("%s: a kubeconfig without a fork", tt.args)
		}
	}
}

// Names of forks are completed from the server.
func TestCompleteForks(t *testing.T) {
	url, _ := forking(t)
	for _, tt := range []struct{ args, want string }{
		{"fork delete --server URL", "x\n"}, {"fork merge --server URL", "x\n"}, {"diff --server URL --fork", "x\n"}, {"fork list --server URL", ":4\n"},
	} {
		args := strings.Fields(strings.ReplaceAll(tt.args, "URL", url))
		cmd, stderr := command(t, append(append([]string{"__complete"}, args...), "")...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+os.DevNull)
		out, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(out), tt.want) {
			t.Errorf("%q: %s%v, %s", tt.args, out, err, stderr)
		}
	}
}
