package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

const discovered = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"versions":[{"version":"v1","resources":[
	{"resource":"configmaps","responseKind":{"kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap","shortNames":["cm"],"verbs":["list"]}]}]}]}`

// remembering is a server with one ConfigMap that joe changed. written returns the last write since its last
// call. Without a history the server ignores unknown parameters, as Kubernetes does.
func remembering(t *testing.T, history bool) (url string, written func() string) {
	t.Helper()
	var write atomic.Pointer[string]
	written = func() string {
		if last := write.Swap(nil); last != nil {
			return *last
		}
		return ""
	}
	state := func(value string, revision int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"%d",
			"managedFields":[{"manager":"edit","operation":"Update","time":"2026-11-20T08:00:02Z","fieldsV1":{"f:data":{"f:k":{}}}}]},"data":{"k":"%s"}}`, revision, value)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet:
			body, _ := io.ReadAll(r.Body)
			last := r.Method + " " + r.URL.RequestURI() + " " + string(body)
			write.Store(&last)
			_, _ = w.Write(body)
		case path == "/api":
			fmt.Fprint(w, discovered)
		case path == "/apis", strings.HasSuffix(path, "/events"):
			fmt.Fprint(w, `{"items":[]}`)
		case history && query.Get("history") == "true":
			fmt.Fprintf(w, `{"kind":"ChangeList","apiVersion":"history.anykind.dev/v1","metadata":{},"items":[
				{"revision":"2","time":"2026-11-20T08:00:02Z","type":"MODIFIED","user":"joe","verb":"update","manager":"edit","before":%s,"object":%s}]}`, state("one", 1), state("two", 2))
		case history && (query.Has("asOf") || query.Get("resourceVersion") == "1"):
			fmt.Fprint(w, state("one", 1))
		default:
			fmt.Fprint(w, state("two", 2))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, written
}

func TestHistory(t *testing.T) {
	kept, written := remembering(t, true)
	lost, _ := remembering(t, false)
	const none = "this server keeps no history: start it with anykind serve --history=30d"
	for _, tt := range []struct {
		url, args string
		code      int
		want      string // in stdout and stderr
		write     string // start of the last write
	}{
		{kept, "history cm a", 0, "2         2026-11-20T08:00:02Z  joe (edit)  update\n      .data.k: \"one\" → \"two\"\n", ""},
		{kept, "history cm/a --since 2026-11-21", 0, "REVISION  TIME  USER  VERB\n", ""},
		{kept, "history cm/a -o yaml", 0, "kind: ChangeList\n", ""},
		{kept, "history cm/a -o json", 0, `"user": "joe"`, ""},
		{kept, "blame cm a", 0, "2 (joe 2026-11-20T08:00:02Z)   k: two\n", ""},
		{kept, "diff cm a --from 1", 0, "  configmaps/a in default\n      .data.k: \"one\" → \"two\"\n", ""},
		{kept, "undo cm a", 0, ".data.k: \"two\" → \"one\"\ndry run: nothing is written; --yes writes\n", "PUT /api/v1/namespaces/default/configmaps/a?fieldManager=anykind-undo&dryRun=All "},
		{kept, "undo cm a --yes", 0, "configmaps/a in default updated\n", "PUT /api/v1/namespaces/default/configmaps/a?fieldManager=anykind-undo {"},
		{kept, "undo cm a --change 7", 1, "the history has no change with revision 7", ""},
		{kept, "undo cm a --to-revision 1", 0, ".data.k: \"two\" → \"one\"", "PUT "},
		{kept, "undo --by jane --since 2026-11-20", 1, "jane changed nothing since 2026-11-20T00:00:00Z", ""},
		{kept, "undo --by joe --since 2026-11-20 cm", 0, ".data.k: \"two\" → \"one\"", "PUT "},
		{kept, "get cm/a -n default --as-of 2026-11-20T08:00:01Z -o yaml", 0, "  k: one\n", ""},
		{kept, "forget cm a", 0, "changes of configmaps/a in default in the history: 1; --yes removes them\n", ""},
		{kept, "forget cm a --yes", 0, "configmaps/a in default has no past\n", `POST /history/forget {"group":"","name":"a","namespace":"default","resource":"configmaps"}`},
		{kept, "history what a", 1, `the server has no kind "what"`, ""},

		{lost, "history cm a", 0, "2026-11-20T08:00:02Z  edit     Update\n    .data.k\n" + none, ""},
		{lost, "history cm a -o yaml", 1, none, ""},
		{lost, "blame cm a", 0, "- (edit 2026-11-20T08:00:02Z)   k: two\n", ""},
		{lost, "diff cm a --from 1h", 1, none, ""},
		{lost, "diff --all -n default --from 1h", 1, none, ""},
		{lost, "undo cm a", 1, none, ""},
		{lost, "undo --by joe --since 1h", 1, none, ""},
		{lost, "get cm --as-of 1h", 1, none, ""},

		{kept, "history cm", exitUsage, "needs one object, as KIND NAME or KIND/NAME", ""},
		{kept, "history cm a --since soon", exitUsage, `--since is "soon": want a time`, ""},
		{kept, "diff cm", exitUsage, "needs --from", ""},
		{kept, "diff --from 1h", exitUsage, "needs a KIND or --all", ""},
		{kept, "undo --by joe", exitUsage, "--by and --since go together", ""},
		{kept, "undo cm a --change 1 --to-revision 1", exitUsage, "mutually exclusive", ""},
		{kept, "get cm --as-of 1h --from x", exitUsage, "mutually exclusive", ""},
		{kept, "get cm", exitUsage, "needs kinds and --from FILE, or --as-of TIME", ""},
	} {
		cmd, stderr := command(t, append(strings.Fields(tt.args), "--server", tt.url)...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+os.DevNull)
		out, _ := cmd.Output()
		if got := string(out) + stderr.String(); cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(strings.ReplaceAll(got, "anykind: ", ""), tt.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", tt.args, cmd.ProcessState.ExitCode(), tt.code, tt.want, got)
		}
		last := written()
		if (tt.write == "") != (last == "") || !strings.HasPrefix(last, tt.write) {
			t.Errorf("%s writes %q, want %q", tt.args, last, tt.write)
		}
	}
}

// KIND and NAME are completed from the server.
func TestCompleteObjects(t *testing.T) {
	url, _ := remembering(t, true)
	for args, want := range map[string]string{"": "configmaps\n", "cm": "a\n", "cm a": ":4\n"} {
		cmd, stderr := command(t, append(append([]string{"__complete", "history", "--server", url}, strings.Fields(args)...), "")...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+os.DevNull)
		out, err := cmd.Output()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%q: %s%v, %s", args, out, err, stderr)
		}
	}
}
