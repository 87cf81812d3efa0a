package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/anykind/anykind/internal/access/audit"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A token of the server is valid in its forks. A token of a fork is valid there only.
func TestForkTokens(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	must(t, a, "POST", inDefault+"/serviceaccounts", robot)
	token := tokenOf(t, a, `{}`)
	must(t, a, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		`{"metadata":{"name":"user"},"rules":[{"nonResourceURLs":["/forks/*"],"verbs":["use"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]}`)
	must(t, a, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		`{"metadata":{"name":"user"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"user"},"subjects":[{"kind":"ServiceAccount","namespace":"default","name":"robot"}]}`)
	c, none := client(t, a, admin(t, a)), client(t, a, nil)
	one, two := forkOf(t, c, a.URL(), `{"name":"one"}`), forkOf(t, c, a.URL(), `{"name":"two"}`)
	answers(t, none, "GET", one+inConfigMaps, token, "", 200)

	var request struct{ Status struct{ Token string } }
	code, answer := ask(t, c, "POST", one+inDefault+"/serviceaccounts/robot/token", "", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	if err := json.Unmarshal([]byte(answer), &request); err != nil || code != 201 {
		t.Fatal(code, answer)
	}
	forged := request.Status.Token
	answers(t, none, "GET", one+inConfigMaps, forged, "", 200)
	answers(t, none, "GET", two+inConfigMaps, forged, "", 401)
	answers(t, none, "GET", a.URL()+inConfigMaps, forged, "", 401)
	// An account that is deleted in the fork has no valid tokens there.
	answers(t, c, "DELETE", one+inDefault+"/serviceaccounts/robot", "", "", 200)
	answers(t, none, "GET", one+inConfigMaps, token, "", 401)
	answers(t, none, "GET", a.URL()+inConfigMaps, token, "", 200)
}

// The rights in a fork count for users whom the server lets in. The server decides that anew for each request.
func TestForkRights(t *testing.T) {
	tokens := write(t, filepath.Join(t.TempDir(), "tokens"), []byte("jane-token,jane,1\n"))
	a := start(t, Options{TokenFile: tokens})
	defer stop(t, a)
	c, jane := client(t, a, admin(t, a)), client(t, a, nil)
	role := func(url, name, rules string) {
		answers(t, c, "POST", url+"/apis/rbac.authorization.k8s.io/v1/clusterroles", "", `{"metadata":{"name":"`+name+`"},"rules":[`+rules+`]}`, 201)
		answers(t, c, "POST", url+"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "",
			`{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"`+name+`"},"subjects":[{"kind":"User","name":"jane"}]}`, 201)
	}
	role(a.URL(), "reader", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}`)
	fork := forkOf(t, c, a.URL(), `{"name":"one"}`)
	answers(t, jane, "GET", a.URL()+inConfigMaps, "jane-token", "", 200)
	answers(t, jane, "GET", fork+inConfigMaps, "jane-token", "", 403)
	role(a.URL(), "entering", `{"nonResourceURLs":["/forks/one"],"verbs":["use"]}`)
	answers(t, jane, "GET", fork+inConfigMaps, "jane-token", "", 200)
	answers(t, jane, "GET", fork+inSecrets, "jane-token", "", 403)
	answers(t, jane, "GET", fork+"/changes", "jane-token", "", 403)
	answers(t, jane, "GET", a.URL()+"/forks", "jane-token", "", 403)
	answers(t, jane, "POST", a.URL()+"/forks", "jane-token", `{"name":"hers"}`, 403)
	answers(t, jane, "DELETE", a.URL()+"/forks/one", "jane-token", "", 403)
	// Rights that she gets in the fork are rights in the fork.
	role(fork, "more", `{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}`)
	answers(t, jane, "GET", fork+inSecrets, "jane-token", "", 200)
	answers(t, jane, "GET", a.URL()+inSecrets, "jane-token", "", 403)
	// The server takes the fork from her.
	answers(t, c, "DELETE", a.URL()+"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/entering", "", "", 200)
	answers(t, jane, "GET", fork+inConfigMaps, "jane-token", "", 403)
	answers(t, jane, "GET", fork+inConfigMaps, "", "", 401)

	// An administrator may try the fork as another user. The other user needs no right for that.
	r, err := http.NewRequestWithContext(t.Context(), "GET", fork+inConfigMaps, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Impersonate-User", "jane")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("as jane: %d", answer.StatusCode)
	}
}

// A fork reaches nothing outside, but for webhooks that are told of a dry run.
func TestForkReachesNothing(t *testing.T) {
	h := startAdmitting(t, Options{})
	var told []any
	h.says(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request map[string]any `json:"request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		told = append(told, review.Request["dryRun"])
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false}}`, review.Request["uid"])
	})
	c, url := h.client, h.app.URL()
	answers(t, c, "POST", url+validatingWebhooks, "", h.configuration("Validating", h.hook.URL, h.ca(), ""), 201)
	rehearsed, without := forkOf(t, c, url, `{"name":"rehearsed"}`), forkOf(t, c, url, `{"name":"without","webhooks":"None"}`)
	answers(t, c, "POST", rehearsed+inConfigMaps, "", configMap("a"), 400, "denied the request")
	if len(told) != 1 || told[0] != true {
		t.Errorf("the webhook was told %v", told)
	}
	answers(t, c, "POST", without+inConfigMaps, "", configMap("a"), 201)
	if len(told) != 1 {
		t.Errorf("the webhook was called %d times", len(told))
	}

	node := `{"metadata":{"name":"n"},"status":{"addresses":[{"type":"InternalIP","address":"10.1.2.3"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":1}}}}`
	answers(t, c, "POST", without+"/api/v1/nodes", "", node, 201)
	answers(t, c, "GET", without+"/api/v1/nodes/n/proxy/pods", "", "", 503, "a fork has no network")
	answers(t, c, "POST", without+"/apis/apiregistration.k8s.io/v1/apiservices", "",
		`{"metadata":{"name":"v1.other.example.com"},"spec":{"group":"other.example.com","version":"v1","groupPriorityMinimum":1,"versionPriority":1,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"kubernetes"}}}`, 201)
	answers(t, c, "GET", without+"/apis/other.example.com/v1/things", "", "", 503)
}

// A fork sees no later change of the server, in watches and lists, and keeps its state while the server compacts.
func TestForkKeepsItsState(t *testing.T) {
	a := start(t, Options{Dir: t.TempDir()})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	answers(t, c, "POST", a.URL()+inConfigMaps, "", mapOf("a", "before"), 201)
	answers(t, c, "POST", a.URL()+inSecrets, "", `{"metadata":{"name":"s"},"stringData":{"k":"before"}}`, 201)
	fork := forkOf(t, c, a.URL(), `{"name":"one"}`)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", fork+inConfigMaps+"?watch=1&resourceVersion=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	events := bufio.NewScanner(answer.Body)
	next := func() string {
		for events.Scan() {
			if line := events.Text(); !strings.Contains(line, "kube-root-ca.crt") {
				return line
			}
		}
		return "the end"
	}
	if line := next(); !strings.Contains(line, `"before"`) {
		t.Errorf("the first event is %s", line)
	}
	for i := range 20 {
		answers(t, c, "PATCH", a.URL()+inConfigMaps+"/a", "", fmt.Sprintf(`{"data":{"k":"later %d"}}`, i), 200)
		answers(t, c, "PATCH", a.URL()+inSecrets+"/s", "", fmt.Sprintf(`{"stringData":{"k":"later %d"}}`, i), 200)
	}
	newest, err := a.backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.backend.Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	answers(t, c, "POST", fork+inConfigMaps, "", mapOf("b", "mine"), 201)
	if line := next(); !strings.Contains(line, `"mine"`) {
		t.Errorf("the next event is %s", line)
	}
	answers(t, c, "GET", fork+inConfigMaps+"/a", "", "", 200, `"before"`)
	answers(t, c, "GET", fork+inSecrets, "", "", 200, "YmVmb3Jl") // not read before
	answers(t, c, "DELETE", a.URL()+"/forks/one", "", "", 200)
	if line := next(); line != "the end" {
		t.Errorf("after the end of the fork: %s", line)
	}
	if err := a.backend.Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	if _, err := a.backend.Get(t.Context(), "/registry/secrets/default/s", 100); err == nil {
		t.Error("the state of the fork is kept after its end")
	}
}

// Random writes in a server and in several forks at once: each has its own writes and nothing else.
func TestForksAreApart(t *testing.T) {
	const forks, names, writes = 5, 6, 60
	a := start(t, Options{Dir: t.TempDir()})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	for i := range names {
		answers(t, c, "POST", a.URL()+inConfigMaps, "", mapOf(fmt.Sprint("n", i), "start"), 201)
	}
	urls := []string{a.URL()}
	for i := range forks {
		urls = append(urls, forkOf(t, c, a.URL(), fmt.Sprintf(`{"name":"f%d"}`, i)))
	}
	var group sync.WaitGroup
	for at, url := range urls {
		random := rand.New(rand.NewPCG(uint64(at), 7))
		group.Go(func() {
			has := map[string]string{}
			for i := range names {
				has[fmt.Sprint("n", i)] = "start"
			}
			for i := range writes {
				name, value := fmt.Sprint("n", random.IntN(2*names)), fmt.Sprintf("%d of %d", i, at)
				path, there := url+inConfigMaps+"/"+name, has[name] != ""
				switch {
				case !there:
					answers(t, c, "POST", url+inConfigMaps, "", mapOf(name, value), 201)
					has[name] = value
				case random.IntN(3) == 0:
					answers(t, c, "DELETE", path, "", "", 200)
					delete(has, name)
				default:
					answers(t, c, "PATCH", path, "", fmt.Sprintf(`{"data":{"k":%q}}`, value), 200)
					has[name] = value
				}
				if i%10 == 0 {
					sees(t, c, url, has)
				}
			}
			sees(t, c, url, has)
		})
	}
	group.Wait()
	if newest, err := a.backend.Revision(t.Context()); err != nil || a.backend.Compact(t.Context(), newest) != nil {
		t.Error(newest, err)
	}
	page, err := a.backend.List(t.Context(), kv.Range{Prefix: "/registry/configmaps/default/n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		if value := string(r.Value); !strings.Contains(value, "start") && !strings.Contains(value, "of 0") {
			t.Errorf("the store of the server has %s", value)
		}
	}
}

// sees checks the ConfigMaps that a list has.
func sees(t *testing.T, c *http.Client, url string, want map[string]string) {
	t.Helper()
	code, body := ask(t, c, "GET", url+inConfigMaps, "", "")
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 {
		t.Error(code, body)
	}
	got := map[string]string{}
	for _, item := range list.Items {
		if strings.HasPrefix(item.Metadata.Name, "n") {
			got[item.Metadata.Name] = item.Data["k"]
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s has %v, want %v", url, got, want)
	}
}

// A fork begins with an earlier state of a server with a history.
func TestForkOfThePast(t *testing.T) {
	a := start(t, Options{Dir: t.TempDir(), History: Remembering{On: true}})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	answers(t, c, "POST", a.URL()+inConfigMaps, "", mapOf("a", "first"), 201)
	answers(t, c, "POST", a.URL()+definitions, "", namespacedKind("Widget"), 201)
	then, err := a.backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers(t, c, "PATCH", a.URL()+inConfigMaps+"/a", "", `{"data":{"k":"second"}}`, 200)
	answers(t, c, "DELETE", a.URL()+definitions+"/widgets.example.com", "", "", 200)
	waitFor(t, c, a.URL()+"/apis/example.com/v1/widgets", 404)
	answers(t, c, "POST", a.URL()+definitions, "", namespacedKind("Gadget"), 201)
	newest, err := a.backend.Revision(t.Context())
	if err != nil || a.backend.Compact(t.Context(), 0) != nil {
		t.Fatal(newest, err)
	}
	fork := forkOf(t, c, a.URL(), fmt.Sprintf(`{"name":"then","resourceVersion":"%d"}`, then))
	answers(t, c, "GET", fork+inConfigMaps+"/a", "", "", 200, `"first"`)
	answers(t, c, "GET", fork+"/apis/example.com/v1/widgets", "", "", 200)
	answers(t, c, "GET", fork+"/apis/example.com/v1/gadgets", "", "", 404)
	answers(t, c, "PATCH", fork+inConfigMaps+"/a", "", `{"data":{"k":"otherwise"}}`, 200)
	answers(t, c, "GET", a.URL()+inConfigMaps+"/a", "", "", 200, `"second"`)

	for spec, want := range map[string]string{
		`{"name":"x","resourceVersion":"999999"}`:                          "Too large resource version",
		`{"name":"x","resourceVersion":"0"}`:                               "resourceVersion: Invalid value",
		`{"name":"x","asOf":"2020-01-01T00:00:00Z"}`:                       "the oldest kept state is of",
		`{"name":"x","asOf":"2020-01-01T00:00:00Z","resourceVersion":"5"}`: "together with resourceVersion",
		`{"name":"X/"}`:                 "name: Invalid value",
		`{}`:                            "name: Required value",
		`{"name":"x","webhooks":"yes"}`: "webhooks: Unsupported value",
		`{"name":"x","lifetime":"-1s"}`: "lifetime: Invalid value",
		`{"name":"then"}`:               "already exists",
		`[]`:                            "the body is no object",
		`{"name":"x"` + strings.Repeat(" ", 70_000) + `}`: "the body is no object",
	} {
		if code, body := ask(t, c, "POST", a.URL()+"/forks", "", spec); code < 400 || code >= 500 && code != 504 || !strings.Contains(body, want) {
			t.Errorf("%.60s: %d %s, want %s", spec, code, body, want)
		}
	}
}

// A fork ends after its lifetime, and all end with the server.
func TestForkEnds(t *testing.T) {
	a := start(t, Options{})
	c := client(t, a, admin(t, a))
	fork := forkOf(t, c, a.URL(), `{"name":"short","lifetime":"10ms"}`)
	waitFor(t, c, fork+"/version", 404)
	waitFor(t, c, a.URL()+"/forks/short", 404)
	forkOf(t, c, a.URL(), `{"name":"short"}`)
	for i := range 3 {
		fork := forkOf(t, c, a.URL(), fmt.Sprintf(`{"name":"f%d","lifetime":"1h"}`, i))
		answers(t, c, "POST", fork+inConfigMaps, "", configMap("a"), 201)
	}
	stop(t, a)
}

// Requests to a fork are audited with their whole path: a fork has the Secrets of its server.
func TestForkIsAudited(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "audit.log")
	policy := write(t, filepath.Join(dir, "policy"), []byte(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}`))
	a := start(t, Options{Audit: audit.Options{PolicyFile: policy, File: audit.FileOptions{
		Path: log, Format: audit.JSON, Version: audit.Version, Delivery: audit.Delivery{Mode: audit.Blocking, MaxEventSize: 1 << 20, MaxBatchSum: 1 << 20},
	}}})
	c := client(t, a, admin(t, a))
	fork := forkOf(t, c, a.URL(), `{"name":"one"}`)
	answers(t, c, "GET", fork+inSecrets+"?limit=7", "", "", 200)
	stop(t, a)
	data, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(data), `"requestURI":"/forks/one/api/v1/namespaces/default/secrets?limit=7"`) {
		t.Errorf("%v: %s", err, data)
	}
}

// A fork of an opened file can be written, and its controllers work.
func TestForkOfAFile(t *testing.T) {
	dir := t.TempDir()
	a := start(t, Options{Dir: dir})
	must(t, a, "POST", inConfigMaps, configMap("a"))
	stop(t, a)
	opened := start(t, Options{Open: dir, Dir: t.TempDir()})
	defer stop(t, opened)
	c := client(t, opened, admin(t, opened))
	answers(t, c, "DELETE", opened.URL()+inConfigMaps+"/a", "", "", 403)
	fork := forkOf(t, c, opened.URL(), `{"name":"one"}`)
	answers(t, c, "DELETE", fork+inConfigMaps+"/a", "", "", 200)
	answers(t, c, "POST", fork+"/api/v1/namespaces", "", `{"metadata":{"name":"gone"}}`, 201)
	answers(t, c, "DELETE", fork+"/api/v1/namespaces/gone", "", "", 200)
	waitFor(t, c, fork+"/api/v1/namespaces/gone", 404)
	answers(t, c, "GET", opened.URL()+inConfigMaps+"/a", "", "", 200)
}

// A server whose store cannot keep states says so.
func TestNoForkOfEtcd(t *testing.T) {
	a := start(t, Options{Backend: struct{ kv.Backend }{memkv.New(memkv.Options{})}})
	defer stop(t, a)
	answers(t, client(t, a, admin(t, a)), "POST", a.URL()+"/forks", "", `{"name":"one"}`, 400, "has no forks")
}

// Nothing keeps a deleted fork in memory: not the objects that it shared, and not a connection that used it.
func TestForkIsFreed(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	answers(t, c, "POST", a.URL()+inConfigMaps, "", configMap("a"), 201)
	answers(t, c, "POST", a.URL()+definitions, "", namespacedKind("Widget"), 201)
	answers(t, c, "POST", a.URL()+"/apis/example.com/v1/namespaces/default/widgets", "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`, 201)
	var freed []weak.Pointer[Fork]
	for i := range 3 {
		name := fmt.Sprint("f", i)
		_, made, err := a.forks.Make(t.Context(), &server.ForkSpec{Name: name}, "")
		if err != nil {
			t.Fatal(err)
		}
		freed = append(freed, weak.Make(made.(*Fork)))
		url := a.URL() + "/forks/" + name
		for _, path := range []string{inConfigMaps, "/api/v1/pods", "/apis/example.com/v1/widgets"} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
			answer, err := c.Do(r)
			if err != nil || answer.StatusCode != 200 || answer.Body.Close() != nil {
				t.Fatal(answer, err)
			}
		}
		answers(t, c, "POST", url+inConfigMaps, "", configMap("b"), 201)
		answers(t, c, "POST", url+definitions, "", namespacedKind("Gadget"), 201)
		if err := made.(*Fork).WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		answers(t, c, "DELETE", a.URL()+"/forks/"+name, "", "", 200)
	}
	// The metrics of controllers refer to the last one.
	begun := time.Now()
	for _, f := range freed[:len(freed)-1] {
		for end := begun.Add(2 * time.Minute); f.Value() != nil; runtime.GC() {
			if time.Now().After(end) {
				_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
				t.Fatal("a deleted fork is in memory; a goroutine above may refer to it")
			}
		}
	}
	t.Log("freed after", time.Since(begun))
}
