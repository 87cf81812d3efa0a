package openapi

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/openapi/openapitest"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// newHandler returns a Handler for openapitest's Definitions, and their Catalog.
func newHandler(t testing.TB, o Options) (*Handler, *resource.Catalog) {
	c := openapitest.Catalog(t)
	return New(c, o), c
}

func documents(t testing.TB, h *Handler) map[string]string {
	t.Helper()
	var list handler3.OpenAPIV3Discovery
	w := ask(h, "GET", "/openapi/v3")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, d := range list.Paths {
		out[name] = d.ServerRelativeURL
	}
	return out
}

func read(t testing.TB, h *Handler, url string) *spec3.OpenAPI {
	t.Helper()
	w := ask(h, "GET", url)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", url, w.Code, w.Body)
	}
	doc := &spec3.OpenAPI{}
	if err := json.Unmarshal(w.Body.Bytes(), doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestListOfDocuments(t *testing.T) {
	h, _ := newHandler(t, Options{})
	// As the aggregator of Kubernetes answers.
	header := ask(h, "GET", "/openapi/v3").Header()
	if header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("Last-Modified") == "" {
		t.Errorf("headers: %v", header)
	}
	list := documents(t, h)
	want := []string{
		"api", "api/v1", "apis", "apis/apiextensions.k8s.io", "apis/apiextensions.k8s.io/v1",
		"apis/coordination.k8s.io", "apis/coordination.k8s.io/v1",
		"apis/disc.anykind.dev/v1", "apis/disc.anykind.dev/v1beta1", "version",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(list))); diff != "" {
		t.Error(diff)
	}
	for name, url := range list {
		w := ask(h, "GET", url)
		if w.Code != 200 {
			t.Errorf("%s: %d", url, w.Code)
		}
		if want := "/openapi/v3/" + name + "?hash=" + strings.Trim(w.Header().Get("ETag"), `"`); url != want {
			t.Errorf("%s is listed as %s", want, url)
		}
	}
}

// testdata has the operations of a document, one per line, for human readers. A document has
// every schema that it refers to, and no other.
func TestOperations(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for name := range documents(t, h) {
		doc := read(t, h, "/openapi/v3/"+name)
		var out strings.Builder
		fmt.Fprintf(&out, "%s %s\n", doc.Info.Title, doc.Info.Version)
		for _, path := range slices.Sorted(maps.Keys(doc.Paths.Paths)) {
			p := doc.Paths.Paths[path]
			fmt.Fprintf(&out, "\n%s %s\n", path, parameterNames(p.Parameters))
			for _, m := range []struct {
				method string
				op     *spec3.Operation
			}{{"GET", p.Get}, {"POST", p.Post}, {"PUT", p.Put}, {"PATCH", p.Patch}, {"DELETE", p.Delete}} {
				if m.op != nil {
					describe(&out, m.method, m.op)
				}
			}
		}
		fmt.Fprintln(&out, "\nschemas")
		for _, s := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
			fmt.Fprintln(&out, "\t"+s)
		}
		golden(t, strings.ReplaceAll(name, "/", "_")+".txt", out.String())

		raw := ask(h, "GET", "/openapi/v3/"+name).Body.Bytes()
		if diff := cmp.Diff(slices.Sorted(slices.Values(refs(raw))), slices.Sorted(maps.Keys(doc.Components.Schemas))); diff != "" {
			t.Errorf("%s: references and schemas: %s", name, diff)
		}
	}
}

func describe(out *strings.Builder, method string, op *spec3.Operation) {
	fmt.Fprintf(out, "\t%-6s %s %s: %s %s\n", method, op.OperationId, op.Tags, op.Description, parameterNames(op.Parameters))
	if op.Extensions != nil {
		fmt.Fprintf(out, "\t\t%v %v\n", op.Extensions["x-kubernetes-action"], op.Extensions["x-kubernetes-group-version-kind"])
	}
	if op.RequestBody != nil {
		fmt.Fprintf(out, "\t\ttakes %s, required %t\n", media(op.RequestBody.Content), op.RequestBody.Required)
	}
	for _, code := range slices.Sorted(maps.Keys(op.Responses.StatusCodeResponses)) {
		r := op.Responses.StatusCodeResponses[code]
		fmt.Fprintf(out, "\t\t%d %s %s\n", code, r.Description, media(r.Content))
	}
}

func parameterNames(list []*spec3.Parameter) []string {
	out := []string{}
	for _, p := range list {
		name := p.Name + ":" + p.Schema.Type[0]
		if p.In == "path" {
			name = "{" + name + "}"
		}
		out = append(out, name)
	}
	return out
}

func media(content map[string]*spec3.MediaType) string {
	schemas := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		ref := strings.TrimPrefix(content[name].Schema.Ref.String(), refPrefix)
		schemas[ref] = append(schemas[ref], name)
	}
	var out []string
	for _, ref := range slices.Sorted(maps.Keys(schemas)) {
		out = append(out, ref[strings.LastIndex(ref, ".")+1:]+" as "+strings.Join(schemas[ref], " "))
	}
	return strings.Join(out, "; ")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (write it anew with -update): %s", file, diff)
	}
}

// kubectl asks the server to validate fields only if the PATCH of the kind lists the parameter
// fieldValidation.
func TestPatchTakesFieldValidation(t *testing.T) {
	h, _ := newHandler(t, Options{})
	doc := read(t, h, "/openapi/v3/apis/disc.anykind.dev/v1")
	op := doc.Paths.Paths["/apis/disc.anykind.dev/v1/namespaces/{namespace}/kites/{name}"].Patch
	if !slices.ContainsFunc(op.Parameters, func(p *spec3.Parameter) bool { return p.Name == "fieldValidation" && p.In == "query" }) {
		t.Error("fieldValidation is not among the parameters")
	}
	want := map[string]any{"group": "disc.anykind.dev", "version": "v1", "kind": "Kite"}
	if diff := cmp.Diff(want, op.Extensions["x-kubernetes-group-version-kind"]); diff != "" {
		t.Error(diff)
	}
}

func TestSchemasOfAKind(t *testing.T) {
	h, _ := newHandler(t, Options{})
	schemas := read(t, h, "/openapi/v3/apis/disc.anykind.dev/v1").Components.Schemas
	sky := schemas["dev.anykind.disc.v1.Sky"]
	if got := slices.Sorted(maps.Keys(sky.Properties)); !slices.Equal(got, []string{"apiVersion", "hue", "kind", "metadata"}) {
		t.Errorf("a Sky has %v", got)
	}
	items := schemas["dev.anykind.disc.v1.SkyList"].Properties["items"]
	if got := items.Items.Schema.Ref.String(); got != refPrefix+"dev.anykind.disc.v1.Sky" {
		t.Errorf("a SkyList has items of %s", got)
	}
	kinds, _ := schemas[deleteOptions].Extensions["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 55 {
		t.Errorf("DeleteOptions of a custom resource are of %d group versions, want Kubernetes' 55", len(kinds))
	}
	kinds, _ = read(t, h, "/openapi/v3/apis/coordination.k8s.io/v1").Components.Schemas[deleteOptions].Extensions["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 2 {
		t.Errorf("DeleteOptions of a Lease are of %v, want v1 and its own", kinds)
	}
}

func TestDocumentIsCachedByItsHash(t *testing.T) {
	h, _ := newHandler(t, Options{})
	const path = "/openapi/v3/apis/disc.anykind.dev/v1"
	url := documents(t, h)["apis/disc.anykind.dev/v1"]
	etag := `"` + strings.TrimPrefix(url, path+"?hash=") + `"`

	w := ask(h, "GET", path+"?hash=STALE")
	if w.Code != 301 || w.Header().Get("Location") != url {
		t.Errorf("a stale hash: %d to %s", w.Code, w.Header().Get("Location"))
	}
	for _, target := range []string{path, url} {
		if w := ask(h, "GET", target, "If-None-Match: "+etag); w.Code != 304 {
			t.Errorf("%s: %d, want 304", target, w.Code)
		}
	}
	if built(h) != 0 {
		t.Error("an unread document was built")
	}

	w = ask(h, "GET", url)
	if got := w.Header().Get("Cache-Control"); got != "public, immutable" || w.Header().Get("Expires") == "" {
		t.Errorf("with the hash: Cache-Control %q, Expires %q", got, w.Header().Get("Expires"))
	}
	w = ask(h, "GET", path)
	if got := w.Header().Get("Cache-Control"); got != "" {
		t.Errorf("without the hash: Cache-Control %q", got)
	}
	if w.Header().Get("ETag") != etag || w.Header().Get("Vary") != "Accept" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("headers: %v", w.Header())
	}
	// Kubernetes answers an Accept header without any media type with 200 and an empty body.
	for accept, code := range map[string]int{"application/yaml": 406, "nonsense": 406, ",": 406, "application/json, */*": 200, "*/*": 200, "application/*": 200} {
		if w := ask(h, "GET", path, "Accept: "+accept); w.Code != code {
			t.Errorf("Accept %s: %d, want %d", accept, w.Code, code)
		}
	}
}

// The protobuf equals the conversion of the JSON by the clients' library.
func TestDocumentsInProtobuf(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for name := range documents(t, h) {
		body := ask(h, "GET", "/openapi/v3/"+name)
		want, err := openapiv3.ParseDocument(body.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, accept := range []string{
			"application/com.github.proto-openapi.spec.v3@v1.0+protobuf", v3Protobuf, v3Protobuf + ", application/json;q=0.5",
		} {
			w := ask(h, "GET", "/openapi/v3/"+name, "Accept: "+accept)
			if got := w.Header().Get("Content-Type"); got != v3Protobuf {
				t.Errorf("%s: %s", accept, got)
			}
			if w.Header().Get("ETag") != body.Header().Get("ETag") {
				t.Error("two forms of one document have different tags")
			}
			got := &openapiv3.Document{}
			if err := proto.Unmarshal(w.Body.Bytes(), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asAny(t, want.ProtoReflect()), asAny(t, got.ProtoReflect())); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// built counts the cached documents.
func built(h *Handler) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.cache.documents {
		if len(d.forms) > 0 {
			n++
		}
	}
	return n
}

func TestHashesFollowContent(t *testing.T) {
	h, c := newHandler(t, Options{})
	before := documents(t, h)
	ask(h, "GET", "/openapi/v3/apis/disc.anykind.dev/v1")
	ask(h, "GET", "/openapi/v3/api/v1")

	c.Swap(resource.NewSet(append(nativeDefinitions(t), custom(t, skies), custom(t, strings.Replace(kites, "A Kite flies.", "A Kite flew.", 1)))))
	after := documents(t, h)
	for name, url := range after {
		if changed := url != before[name]; changed != (name == "apis/disc.anykind.dev/v1") {
			t.Errorf("%s: changed %t", name, changed)
		}
	}
	if n := built(h); n != 1 {
		t.Errorf("%d documents are kept, want the one that did not change", n)
	}

	c.Swap(resource.NewSet(append(nativeDefinitions(t), custom(t, skies), custom(t, kites))))
	if diff := cmp.Diff(before, documents(t, h)); diff != "" {
		t.Errorf("the same content again: %s", diff)
	}
	for _, o := range []Options{{Build: "other"}, {Release: "1.34"}, {CBOR: true}} {
		if other, _ := newHandler(t, o); documents(t, other)["api/v1"] == before["api/v1"] {
			t.Errorf("a server with %+v has the same hash", o)
		}
	}
}

// A schema that identifies its source is not compiled for the list.
func TestFingerprintSparesTheModel(t *testing.T) {
	d := custom(t, skies)
	d.Versions[0].Schema, d.Versions[0].Fingerprint = nil, "1"
	one := fingerprintOf(d, d.Versions[0])
	d.Versions[0].Fingerprint = "2"
	if one == fingerprintOf(d, d.Versions[0]) {
		t.Error("the fingerprint of the schema does not count")
	}
}

func TestWhatIsIdleIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHandler(t, Options{Idle: time.Minute})
		documents(t, h)
		ask(h, "GET", "/openapi/v3/api/v1")
		ask(h, "GET", "/openapi/v3/apis/disc.anykind.dev/v1")

		time.Sleep(50 * time.Second)
		ask(h, "GET", "/openapi/v3/api/v1")
		time.Sleep(80 * time.Second)
		if built(h) != 0 || h.cache.fingerprints.Len() != 0 || h.cache.shared != nil {
			t.Errorf("after two minutes this is kept: %+v", &h.cache)
		}
		if h.cache.timer != nil {
			t.Error("with nothing to forget there is still a timer")
		}

		// The next request builds everything again.
		if len(documents(t, h)) == 0 || ask(h, "GET", "/openapi/v3/api/v1").Code != 200 {
			t.Error("nothing came back")
		}
		for range 5 {
			time.Sleep(50 * time.Second)
			ask(h, "GET", "/openapi/v3/api/v1")
		}
		if built(h) != 1 {
			t.Error("what is asked for all the time was forgotten")
		}
		if h.cache.list != nil {
			t.Error("the unused list is still cached")
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	h, c := newHandler(t, Options{})
	var readers sync.WaitGroup
	for _, target := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/apis/disc.anykind.dev/v1"} {
		readers.Go(func() {
			for range 50 {
				if w := ask(h, "GET", target); w.Code != 200 {
					t.Errorf("%s: %d", target, w.Code)
				}
			}
		})
	}
	for i := range 20 {
		definitions := append(nativeDefinitions(t), custom(t, kites))
		if i%2 == 0 {
			definitions = append(definitions, custom(t, skies))
		}
		c.Swap(resource.NewSet(definitions))
	}
	readers.Wait()
}

// Two lists of one second have one Last-Modified, but different ETags.
func TestDocumentListHasATag(t *testing.T) {
	h, c := newHandler(t, Options{})
	before := ask(h, "GET", "/openapi/v3").Header()
	known := []string{"If-None-Match: " + before.Get("ETag"), "If-Modified-Since: " + before.Get("Last-Modified")}
	if w := ask(h, "GET", "/openapi/v3", known...); w.Code != 304 {
		t.Errorf("nothing changed: %d", w.Code)
	}
	c.Swap(resource.NewSet(append(nativeDefinitions(t), custom(t, kites))))
	if w := ask(h, "GET", "/openapi/v3", known...); w.Code != 200 {
		t.Errorf("the list changed: %d", w.Code)
	}
}

func TestHandles(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for _, path := range []string{"/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openapi/v3/api/v1"} {
		if !h.Handles(path) {
			t.Errorf("%s is not handled", path)
		}
	}
	for _, path := range []string{"/", "/openapi", "/openapi/v2/", "/openapi/v30", "/api/v1"} {
		if h.Handles(path) {
			t.Errorf("%s is handled", path)
		}
	}
}

func TestNoSuchDocument(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for _, name := range []string{"", "nope", "api/", "api/v2", "apis/", "apis/nope/v1", "apis/disc.anykind.dev", "apis/disc.anykind.dev/v1/"} {
		if w := ask(h, "GET", "/openapi/v3/"+name); w.Code != 404 || w.Body.Len() != 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestUnknownDocumentAsksForNews(t *testing.T) {
	asked := 0
	c := &resource.Catalog{}
	h := New(c, Options{Refresh: func(context.Context) error {
		asked++
		c.Swap(resource.NewSet([]*resource.Definition{custom(t, kites)}))
		return nil
	}})
	for range 2 {
		if w := ask(h, "GET", "/openapi/v3/apis/disc.anykind.dev/v1"); w.Code != 200 {
			t.Errorf("%d", w.Code)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	h = New(&resource.Catalog{}, Options{Refresh: func(context.Context) error { return context.DeadlineExceeded }})
	if w := ask(h, "GET", "/openapi/v3/apis/nope/v1"); w.Code != http.StatusGatewayTimeout {
		t.Errorf("got %d, want 504: nothing is known of the group", w.Code)
	}
}

func TestDocumentsOfAnEmptyCatalog(t *testing.T) {
	names := (&Options{}).documentNames(resource.NewSet(nil))
	if want := []string{"apis", "version"}; !slices.Equal(names, want) {
		t.Errorf("documents %v, want %v", names, want)
	}
}
