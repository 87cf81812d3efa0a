package publish

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// An answer is a response.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (a *answer) text() string { return string(a.body) }

// tree returns the decoded JSON of the body, nil if it is not JSON.
func (a *answer) tree() any {
	var out any
	_ = json.Unmarshal(a.body, &out)
	return out
}

// get gets a path with headers, as in "If-None-Match: x".
func (s *server) get(t *testing.T, path, accept string, headers ...string) *answer {
	t.Helper()
	return s.send(t, http.MethodGet, path, accept, "", headers...)
}

func (s *server) send(t *testing.T, method, path, accept, body string, headers ...string) *answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Accept"] = []string{accept}
	if accept == "" {
		delete(r.Header, "Accept")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	response, err := s.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{response.StatusCode, response.Header, data}
}

// A comparison has two servers with the same definitions.
type comparison struct {
	theirs, ours *server
	groups       []string // of the definitions
}

// both sends a request to both servers and compares the headers of the responses.
func (c *comparison) both(t *testing.T, path, accept string) (theirs, ours *answer) {
	t.Helper()
	theirs, ours = c.theirs.get(t, path, accept), c.ours.get(t, path, accept)
	at := fmt.Sprintf("%s as %q", path, accept)
	if theirs.code != ours.code {
		t.Errorf("%s: %d, of Kubernetes %d", at, ours.code, theirs.code)
	}
	for _, name := range []string{"Content-Type", "Cache-Control"} {
		same(t, at+": "+name, theirs.header[name], ours.header[name])
	}
	// Compression is a matter of the connection.
	vary := func(a *answer) []string {
		return slices.DeleteFunc(slices.Clone(a.header.Values("Vary")), func(v string) bool { return v == "Accept-Encoding" })
	}
	same(t, at+": Vary", vary(theirs), vary(ours))
	for _, name := range []string{"Etag", "Last-Modified", "Expires"} {
		if path == "/openapi/v3" && name == "Etag" {
			continue // two lists of one second have the same time
		}
		same(t, at+" has "+name, theirs.header.Get(name) != "", ours.header.Get(name) != "")
	}
	return theirs, ours
}

func (c *comparison) run(t *testing.T) {
	t.Run("builtin", c.builtin)
	t.Run("discovery", c.discovery)
	t.Run("aggregated", c.aggregated)
	t.Run("v2", c.whole)
	t.Run("v3", c.documents)
}

// list returns the parts of a list in an object that are about one of the groups.
func (c *comparison) list(tree any, field string, name func(map[string]any) any) []any {
	out := []any{}
	list, _ := tree.(map[string]any)[field].([]any)
	for _, entry := range list {
		if group, _ := name(entry.(map[string]any)).(string); slices.Contains(c.groups, group) {
			out = append(out, entry)
		}
	}
	return out
}

func (c *comparison) discovery(t *testing.T) {
	listed, ours := c.both(t, "/apis", "")
	groups := func(a *answer) []any {
		return c.list(a.tree(), "groups", func(g map[string]any) any { return g["name"] })
	}
	same(t, "/apis", groups(listed), groups(ours))
	theirs, ours := c.both(t, "/api", "")
	// The address of a server differs.
	same(t, "/api", keys(theirs.tree()), keys(ours.tree()))
	for _, path := range []string{"/api/v1", "/api/v9", "/apis/none.example.com", "/apis/none.example.com/v1"} {
		c.both(t, path, "")
	}
	for _, g := range groups(listed) {
		group := "/apis/" + g.(map[string]any)["name"].(string)
		theirs, ours := c.both(t, group, "")
		same(t, group, theirs.tree(), ours.tree())
		c.both(t, group+"/v0", "")
		for _, v := range g.(map[string]any)["versions"].([]any) {
			path := group + "/" + v.(map[string]any)["version"].(string)
			for _, accept := range []string{"", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/html"} {
				c.both(t, path, accept)
			}
			theirs, ours := c.both(t, path, "")
			same(t, path, byName(theirs.tree()), byName(ours.tree()))
		}
	}
}

func keys(tree any) []string {
	object, _ := tree.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

// byName returns a list of resources sorted by name, with definitions before their subresources.
// Kubernetes lists definitions in the random order of a map.
func byName(tree any) any {
	list, _ := tree.(map[string]any)["resources"].([]any)
	name := func(v any) string {
		name, _ := v.(map[string]any)["name"].(string)
		resource, _, _ := strings.Cut(name, "/")
		return resource
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(name(a), name(b)) })
	return tree
}

func (c *comparison) aggregated(t *testing.T) {
	theirs, ours := c.both(t, "/apis", aggregated)
	groups := func(a *answer) []any {
		return c.list(a.tree(), "items", func(g map[string]any) any { return g["metadata"].(map[string]any)["name"] })
	}
	same(t, "/apis", groups(theirs), groups(ours))
	const protobuf = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, accept := range []string{
		aggregated + ",application/json", "application/json," + aggregated, protobuf, protobuf + "," + aggregated,
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", "text/html", "*/*",
	} {
		c.both(t, "/apis", accept)
		c.both(t, "/api", accept)
	}
	c.unchanged(t, "/apis", aggregated)
}

// unchanged compares the responses to clients that have the document already.
func (c *comparison) unchanged(t *testing.T, path, accept string) {
	t.Helper()
	for _, s := range []*server{c.theirs, c.ours} {
		tag := s.get(t, path, accept).header.Get("Etag")
		if got := s.get(t, path, accept, "If-None-Match: "+tag); got.code != http.StatusNotModified || len(got.body) > 0 {
			t.Errorf("%s%s: %d for who has it", s.URL, path, got.code)
		}
	}
}

func (c *comparison) whole(t *testing.T) {
	for _, accept := range []string{
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
		"application/*", "application/yaml", "text/html",
	} {
		c.both(t, "/openapi/v2", accept)
	}
	c.unchanged(t, "/openapi/v2", "application/json")
	theirs, ours := c.both(t, "/openapi/v2", "")
	want, got := theirs.tree().(map[string]any), ours.tree().(map[string]any)
	same(t, "fields", keys(want), keys(got))
	for _, name := range keys(want) {
		switch name {
		case "paths", "definitions":
			same(t, name, c.part(want[name]), c.part(got[name]))
		case "parameters": // a server has those that it refers to
		default:
			same(t, name, want[name], got[name])
		}
	}
}

// part returns the part of a document about the groups.
func (c *comparison) part(tree any) any {
	out := map[string]any{}
	for name, value := range tree.(map[string]any) {
		for _, group := range c.groups {
			parts := strings.Split(group, ".")
			slices.Reverse(parts)
			if strings.HasPrefix(name, "/apis/"+group+"/") || strings.HasPrefix(name, strings.Join(parts, ".")+".") {
				out[name] = value
			}
		}
	}
	return out
}

func (c *comparison) documents(t *testing.T) {
	theirs, ours := c.both(t, "/openapi/v3", "")
	list := func(a *answer) map[string]any {
		paths, _ := a.tree().(map[string]any)["paths"].(map[string]any)
		maps.DeleteFunc(paths, func(name string, _ any) bool {
			return !slices.ContainsFunc(c.groups, func(group string) bool { return strings.HasPrefix(name+"/", "apis/"+group+"/") })
		})
		return paths
	}
	listed := list(ours)
	same(t, "documents", keys(list(theirs)), keys(listed))
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		path := "/openapi/v3/" + name
		for _, accept := range []string{
			"application/com.github.proto-openapi.spec.v3@v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
			"application/yaml", "*/*",
		} {
			c.both(t, path, accept)
		}
		c.unchanged(t, path, "application/json")
		c.hashed(t, path, listed[name].(map[string]any)["serverRelativeURL"].(string))
		theirs, ours := c.both(t, path, "")
		same(t, path, described(theirs.tree()), described(ours.tree()))
	}
}

// described returns a document without the description of Time, which is only in the source of
// Kubernetes.
func described(tree any) any {
	at, _ := tree.(map[string]any)
	for _, name := range []string{"components", "schemas", "io.k8s.apimachinery.pkg.apis.meta.v1.Time"} {
		at, _ = at[name].(map[string]any)
	}
	delete(at, "description")
	return tree
}

// hashed compares the responses at the URL with the hash of the content, and at one with another hash.
func (c *comparison) hashed(t *testing.T, path, url string) {
	t.Helper()
	c.both(t, path+"?hash=stale", "")
	index, _ := c.theirs.get(t, "/openapi/v3", "").tree().(map[string]any)["paths"].(map[string]any)
	its, _ := index[strings.TrimPrefix(path, "/openapi/v3/")].(map[string]any)["serverRelativeURL"].(string)
	theirs, ours := c.theirs.get(t, its, ""), c.ours.get(t, url, "")
	for _, name := range []string{"Content-Type", "Cache-Control"} {
		same(t, url+": "+name, theirs.header[name], ours.header[name])
	}
	same(t, url+" expires", theirs.header.Get("Expires") != "", ours.header.Get("Expires") != "")
}

// same reports the differences of two JSON values.
func same(t *testing.T, at string, want, got any) {
	t.Helper()
	wants, one := want.(map[string]any)
	gots, other := got.(map[string]any)
	if one && other {
		for _, name := range slices.Sorted(maps.Keys(wants)) {
			same(t, at+" "+name, wants[name], gots[name])
		}
		for _, name := range slices.Sorted(maps.Keys(gots)) {
			if _, ok := wants[name]; !ok {
				t.Errorf("%s has %s, which that of Kubernetes has not: %v", at, name, gots[name])
			}
		}
		return
	}
	if wants, ok := want.([]any); ok {
		if gots, ok := got.([]any); ok && len(wants) == len(gots) {
			for i := range wants {
				same(t, fmt.Sprintf("%s %d", at, i), wants[i], gots[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s is\n\t%v, and of Kubernetes\n\t%v", at, got, want)
	}
}
