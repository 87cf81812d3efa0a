package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A witness records authorized attributes, and the keys written since.
type witness struct {
	kv.Backend

	mu      sync.Mutex
	asked   []authz.Attributes
	touched []kv.Change
}

// Authorize allows everything.
func (w *witness) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, *a)
	return authz.Allow, "", nil
}

func (w *witness) Commit(ctx context.Context, write kv.Write) (int64, error) {
	revision, err := w.Backend.Commit(ctx, write)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.touched = append(w.touched, slices.Collect(write.All())...)
	}
	return revision, err
}

// A touch is an App with a witness that checks requests.
type touch struct {
	*testing.T
	app     *App
	kinds   *resource.Set
	witness *witness
	done    map[string]int // checked writes and reads, by verb
}

func startTouch(t *testing.T) *touch {
	w := &witness{Backend: memkv.New(memkv.Options{})}
	anonymous := true
	a := start(t, Options{Backend: w, Controllers: []string{}, Authentication: Authentication{Anonymous: &anonymous}})
	t.Cleanup(func() { stop(t, a) })
	a.authorizer.Set(w)
	c := &touch{t, a, resource.NewSet(builtin.Definitions()), w, map[string]int{}}
	for _, name := range []string{"dev", "ops"} {
		c.ask("POST", "/api/v1/namespaces", "application/json", "", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	return c
}

// ask sends a request, and compares its effects with the authorized attributes.
func (c *touch) ask(method, line, contentType, header, body string) {
	c.Helper()
	u, err := url.ParseRequestURI(line)
	if err != nil {
		return // net/http refuses it
	}
	r := httptest.NewRequestWithContext(c.Context(), "GET", "/", strings.NewReader(body))
	r.Method, r.URL, r.RequestURI = method, u, line
	if info := request.Parse(r); info.IsLongRunning() {
		return // it would not return
	}
	r.Header.Set("Content-Type", contentType)
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	c.witness.asked, c.witness.touched = nil, nil
	answer := httptest.NewRecorder()
	c.app.server.ServeHTTP(answer, r)
	what := fmt.Sprintf("%s %s (%s) %s", method, line, header, body)
	for _, t := range c.witness.touched {
		if !slices.ContainsFunc(c.witness.asked, func(a authz.Attributes) bool { return c.permits(&a, &t) }) {
			c.Errorf("%s wrote %s, and %+v was authorized", what, t.Key, c.witness.asked)
		}
	}
	if answer.Code == http.StatusOK && len(c.witness.touched) == 0 && len(c.witness.asked) > 0 {
		c.shown(what, &c.witness.asked[0], answer.Body.Bytes())
	}
}

// permits reports whether authorized attributes cover a write of a key.
func (c *touch) permits(a *authz.Attributes, t *kv.Change) bool {
	verbs := []string{"update", "patch", "delete", "deletecollection"} // a deletion may only set deletionTimestamp
	switch {
	case t.Value == nil:
		verbs = []string{"delete", "deletecollection", "update", "patch"} // an update may remove the last finalizer
	case t.Expect == kv.Absent:
		verbs = []string{"create"}
	}
	d := c.kinds.Lookup(a.Group, a.Resource)
	if d == nil || !slices.Contains(verbs, a.Verb) {
		return false
	}
	namespace, name := a.Namespace, a.Name
	if !d.Namespaced {
		namespace = ""
	}
	c.done[a.Verb]++
	if name == "" && (a.Verb == "create" || a.Verb == "deletecollection") {
		return strings.HasPrefix(t.Key, d.NamespacePrefix(namespace))
	}
	return t.Key == d.Key(namespace, name)
}

// shown compares the objects in a response with the authorized attributes.
func (c *touch) shown(what string, a *authz.Attributes, body []byte) {
	type object struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	var shown struct {
		object
		Items []object
	}
	d := c.kinds.Lookup(a.Group, a.Resource)
	if json.Unmarshal(body, &shown) != nil || d == nil || !a.IsResource || a.Verb == "watch" {
		return
	}
	objects := shown.Items
	if shown.Kind == d.Kind {
		objects = []object{shown.object}
	} else if shown.Kind != d.ListKind {
		return // another kind, by a subresource
	}
	for _, o := range objects {
		c.done[a.Verb]++
		if d.Namespaced && a.Namespace != "" && o.Metadata.Namespace != a.Namespace || a.Name != "" && o.Metadata.Name != a.Name {
			c.Errorf("%s shows %s/%s, and %+v was authorized", what, o.Metadata.Namespace, o.Metadata.Name, a.Info)
		}
	}
}

var (
	touchSteps = []string{"a", "b", "%61", "a%2Fb", "..", ".", "", "status", "scale", "finalize", "configmaps", "namespaces", "dev", "*", "%2e%2e", "a%00b", "A"}
	touchRoots = []string{
		"/api/v1/namespaces/dev/configmaps", "/api/v1/namespaces/ops/configmaps", "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/namespaces/dev",
		"/apis/coordination.k8s.io/v1/namespaces/dev/leases", "/apis/apps/v1/namespaces/dev/deployments", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/api/v1/proxy/namespaces/dev/configmaps", "/api/v1/namespaces/%64ev/configmaps", "//api/v1/configmaps", "/api//v1/configmaps",
		"/api/v1/namespaces/dev%2Fconfigmaps", "/apis/core/v1/configmaps", "/api/v1/namespaces/../configmaps",
	}
	touchQueries = []string{
		"dryRun=All", "fieldManager=m", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%3Db&limit=1", "labelSelector=a", "field%53elector=metadata.name%3Da",
		"fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db", "fieldSelector=metadata.name%3Da;limit=x", "limit=x&fieldSelector=metadata.name%3Da",
		"fieldSelector=metadata.namespace%3Dops", "force=true&fieldManager=m", "gracePeriodSeconds=0", "resourceVersion=0", "watch=0", "pretty=1",
	}
	touchTypes   = []string{"application/json", "application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"}
	touchHeaders = []string{
		"", "", "", "X-HTTP-Method-Override: DELETE", "X-Original-URL: /api/v1/namespaces/ops/configmaps/a", "X-Forwarded-Prefix: /x", "X-Rewrite-Url: /livez",
		"Upgrade: websocket", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io", "Host: other", "Content-Encoding: gzip", "X-Remote-User: root",
	}
)

// random sends a request made of few words, so that some requests match objects.
func (c *touch) random(r *rand.Rand) {
	of := func(words []string) string { return words[r.IntN(len(words))] }
	line := of(touchRoots)
	name := of([]string{"a", "b", "", "c"})
	for i := range []int{0, 0, 1, 1, 1, 1, 1, 2, 3}[r.IntN(9)] {
		step := of(touchSteps)
		if i == 0 && r.IntN(2) == 0 {
			step = name
		}
		line += "/" + step
	}
	for i := range r.IntN(3) {
		line += []string{"?", "&"}[i] + of(touchQueries)
	}
	namespace := of([]string{"", "", "", "dev", "ops"})
	group, kind := "v1", "ConfigMap"
	for part, is := range map[string][2]string{
		"leases": {"coordination.k8s.io/v1", "Lease"}, "deployments": {"apps/v1", "Deployment"}, "clusterroles": {"rbac.authorization.k8s.io/v1", "ClusterRole"},
	} {
		if strings.Contains(line, part) {
			group, kind = is[0], is[1]
		}
	}
	if strings.HasPrefix(line, "/api/v1/namespaces") && !strings.Contains(line, "configmaps") {
		kind = "Namespace"
	}
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q,"labels":{"a":"%d"}}}`, group, kind, name, namespace, r.IntN(9))
	if kind == "Deployment" {
		body = strings.TrimSuffix(body, "}") + `,"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	}
	method := of([]string{"GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "get"})
	if method == "DELETE" {
		if body = ""; kind == "Namespace" {
			method = "GET" // no controller would empty the namespace
		}
	}
	contentType := touchTypes[0]
	if method == "PATCH" || r.IntN(6) == 0 {
		contentType = of(touchTypes)
	}
	c.ask(method, line, contentType, of(touchHeaders), body)
}

func FuzzTouchesWhatWasAuthorized(f *testing.F) {
	f.Add("PUT", "/api/v1/namespaces/dev/configmaps/%61", "application/json", "X-HTTP-Method-Override: DELETE", `{"metadata":{"name":"a"}}`)
	f.Add("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Da", "", "", "")
	f.Fuzz(func(t *testing.T, method, line, contentType, header, body string) {
		startTouch(t).ask(method, line, contentType, header, body)
	})
}

// A nextDoor is a store that another server closes.
type nextDoor struct{ kv.Backend }

func (nextDoor) Close() error { return nil }

// A role that is changed through one server takes effect at once in another server of the store.
func TestGrantsThroughAnotherServer(t *testing.T) {
	store := memkv.New(memkv.Options{})
	defer store.Close()
	here := startPeople(t, Options{Backend: nextDoor{store}})
	defer stop(t, here.app)
	there := startPeople(t, Options{Backend: nextDoor{store}})
	defer stop(t, there.app)
	for range 50 {
		here.grant("{apiGroups: [''], resources: [configmaps], verbs: [list]}")
		there.does("bob", "GET", configMaps, "", 200, "")
		there.does("root", "DELETE", rbacPath+"/namespaces/default/rolebindings/b", "", 200, "")
		here.does("bob", "GET", configMaps, "", 403, "")
	}
}
