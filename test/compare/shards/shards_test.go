// Package shards sends lists, watches and deletions with a shard selector to a kube-apiserver and to anykind, both
// with the feature gate ShardedListAndWatch, and compares the responses.
//
// Both servers have the same objects in the same namespaces, so shards by namespace are equal. UIDs differ: shards
// by UID are compared with the hashes of the UIDs of the same server.
package shards

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/sharding"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

const (
	gate       = "--feature-gates=ShardedListAndWatch=true"
	namespaces = 12

	zero, quarter, half, full = "0x0000000000000000", "0x4000000000000000", "0x8000000000000000", "0x10000000000000000"

	byUID, byNamespace = "object.metadata.uid", "object.metadata.namespace"

	configMaps = "/api/v1/configmaps?labelSelector=test%3Dshards"
	leases     = "/apis/coordination.k8s.io/v1/leases?labelSelector=test%3Dshards"
	kites      = "/apis/shards.example.com/v1/kites?labelSelector=test%3Dshards"
)

func shard(field, start, end string) string {
	return fmt.Sprintf("shardRange(%s, '%s', '%s')", field, start, end)
}

// namespace returns the name of a namespace. Names with different beginnings have hashes in each quarter.
func namespace(n int) string { return fmt.Sprintf("%c-shards", 'a'+n) }

func where(path, selector string) string { return path + "&shardSelector=" + url.QueryEscape(selector) }

// invalid are selectors that a server rejects, or ignores while the gate is off.
var invalid = []string{
	" ", "x", "1", "'x'", "true", "[1]", "{}", "a.b", "shardRange", "shardRange(", "shardRange()", "shardRange(1, 2, 3)", "x.shardRange(1)", "size('x')", "!true",
	"has(object.metadata)", "[1].all(x, x)", "object.metadata.uid == ''", "\"", "a ||", "|| a", "é", strings.Repeat("(", 300), strings.Repeat("!", 300) + "x",
	shard(byUID, zero, half) + " && " + shard(byUID, half, full),
	shard(byUID, zero, half) + " || " + shard(byNamespace, half, full),
	shard(byUID, zero, half) + " || x",
	"x || " + shard(byUID, zero, half),
	shard(byUID, zero, half) + " " + shard(byUID, half, full),
	shard("metadata.uid", zero, half), shard("object.metadata.name", zero, half), shard("object.metadata['uid']", zero, half), shard("object().metadata.uid", zero, half),
	shard("object.metadata.?uid", zero, half), shard("1", zero, half), shard("has(object.metadata.uid)", zero, half), shard("'object.metadata.uid'", zero, half),
	shard(byUID, "0x0", half), shard(byUID, zero, "0x8"), shard(byUID, "0", half), shard(byUID, "", half), shard(byUID, "0x", half), shard(byUID, "0X0000000000000000", half),
	shard(byUID, half, zero), shard(byUID, half, half), shard(byUID, full, full), shard(byUID, full, half), shard(byUID, zero, "0x10000000000000001"),
	shard(byUID, zero, "0x100000000000000000"), shard(byUID, zero, "0xFFFFFFFFFFFFFFFF"), shard(byUID, zero, "0xfffffffffffffffg"), shard(byUID, "0x00000000000000000", half), shard(byUID, zero, "0xé"),
	"shardRange(object.metadata.uid, 0, 1)", "shardRange(object.metadata.uid, '" + zero + "', " + byUID + ")", "shardRange(object.metadata.uid, b'" + zero + "', '" + half + "')",
	"shardRange(object.metadata.uid, '" + zero + "')", "shardRange(object.metadata.uid, '" + zero + "', '" + half + "', '')", "shardRange(object.metadata.uid, '" + zero + "' + '', '" + half + "')",
}

// valid are selectors of shards that are equal on both servers.
var valid = []string{
	"", shard(byUID, zero, full), "\n(" + shard(byUID, zero, half) + ")||" + strings.ReplaceAll(shard(byUID, half, full), "'", `"`) + " ",
	shard("object . metadata . uid", zero, full), shard(".object.metadata.uid", zero, full), strings.ReplaceAll(shard(byUID, zero, full), "'", `'''`), "shardRange(object.metadata.uid, '\\x30" + zero[1:] + "', r'" + full + "')",
	shard(byNamespace, zero, quarter), shard(byNamespace, quarter, half), shard(byNamespace, half, full), shard(byNamespace, half, "0xffffffffffffffff"),
	shard(byNamespace, zero, quarter) + "||" + shard(byNamespace, half, full), shard(byNamespace, zero, half) + "||" + shard(byNamespace, quarter, full) + "||" + shard(byNamespace, zero, half),
	shard(byNamespace, "0xcbf29ce484222325", "0xcbf29ce484222326"), // the hash of no namespace
}

// A side is one of the servers.
type side struct {
	client *wire.Client
	judge  *judge.Server
	since  string // the resourceVersion before all objects
}

func (x *side) do(t *testing.T, s wire.Step) *wire.Answer {
	t.Helper()
	if len(s.Body) > 0 && len(s.Header) == 0 {
		s.Header = []wire.Field{{Name: "Content-Type", Value: "application/json"}}
	}
	a := x.client.Do(t.Context(), s)
	if strings.Contains(s.Path, "watch=1") && strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") && a.Code == 200 {
		a.Body = []byte(`{"kind":"Events","items":[` + strings.Join(strings.Split(strings.TrimSpace(string(a.Body)), "\n"), ",") + `]}`)
	}
	return a
}

// A world is both servers.
type world struct{ theirs, ours *side }

// same sends a request to both and compares the responses. It returns those.
func (w *world) same(t *testing.T, step func(x *side) wire.Step) (theirs, ours *wire.Answer) {
	t.Helper()
	theirs, ours = w.theirs.do(t, step(w.theirs)), w.ours.do(t, step(w.ours))
	w.compare(t, step(w.theirs), theirs, ours)
	return theirs, ours
}

func (w *world) compare(t *testing.T, s wire.Step, theirs, ours *wire.Answer) {
	t.Helper()
	for _, d := range judge.Compare(w.theirs.judge.Normal(theirs), w.ours.judge.Normal(ours)) {
		path, _ := url.QueryUnescape(s.Path)
		t.Errorf("%s %s %v: %s\n\tKubernetes %s\n\tanykind    %s", s.Method, path, s.Header, d.Place, d.Theirs, d.Ours)
	}
}

func (w *world) get(t *testing.T, path string, header ...wire.Field) (theirs, ours *wire.Answer) {
	t.Helper()
	return w.same(t, func(*side) wire.Step { return wire.Step{Method: "GET", Path: path, Header: header} })
}

func accept(media string) wire.Field { return wire.Field{Name: "Accept", Value: media} }

// start starts both servers, and creates the same objects there.
func start(t *testing.T, flags ...string) *world {
	t.Helper()
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	o := servers.Options{Reference: "start", Store: "memory", Gates: "CBORServingAndStorage=true", Dir: t.TempDir(), Theirs: flags, Ours: flags}
	o.WithoutControllers()
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	w := &world{}
	for at, c := range map[**side]*wire.Client{&w.theirs: p.Theirs, &w.ours: p.Ours} {
		x := &side{client: c, judge: judge.NewServer("shards")}
		*at = x
		x.make(t, servers.Definitions, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"kites.shards.example.com"},"spec":{
			"group":"shards.example.com","scope":"Namespaced","names":{"plural":"kites","kind":"Kite"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},"selectableFields":[]}]}}`)
		if err := servers.Wait(t.Context(), func() bool { return x.do(t, wire.Step{Method: "GET", Path: kites}).Code == 200 }); err != nil {
			t.Fatal(err)
		}
		x.since = metadata(x.do(t, wire.Step{Method: "GET", Path: kites}))["resourceVersion"].(string)
		for n := range namespaces {
			x.fill(t, namespace(n))
		}
	}
	for _, path := range []string{configMaps, leases, kites} { // both name the UIDs in the same order
		w.get(t, path)
	}
	return w
}

func (x *side) make(t *testing.T, path, body string) *wire.Answer {
	t.Helper()
	a := x.do(t, wire.Step{Method: "POST", Path: path, Body: []byte(body)})
	if a.Code != 201 {
		t.Fatalf("POST %s: %d %s", path, a.Code, a.Body)
	}
	return a
}

// fill creates a namespace with objects.
func (x *side) fill(t *testing.T, namespace string) {
	t.Helper()
	x.make(t, "/api/v1/namespaces", `{"metadata":{"name":"`+namespace+`","labels":{"test":"shards"}}}`)
	for _, name := range []string{"a", "b"} {
		const meta = `"metadata":{"name":"%s","labels":{"test":"shards"}}}`
		x.make(t, "/api/v1/namespaces/"+namespace+"/configmaps", fmt.Sprintf(`{`+meta, name))
		x.make(t, "/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases", fmt.Sprintf(`{`+meta, name))
		x.make(t, "/apis/shards.example.com/v1/namespaces/"+namespace+"/kites", fmt.Sprintf(`{"apiVersion":"shards.example.com/v1","kind":"Kite",`+meta, name))
	}
}

// metadata returns the metadata of a response in JSON.
func metadata(a *wire.Answer) map[string]any {
	var o struct{ Metadata map[string]any }
	_ = json.Unmarshal(a.Body, &o) // other bodies have none
	return o.Metadata
}

func TestShards(t *testing.T) {
	w := start(t, gate)
	t.Run("invalid", w.invalid)
	t.Run("lists", w.lists)
	t.Run("pages", w.pages)
	t.Run("uids", w.uids)
	t.Run("watches", w.watches)
	t.Run("metrics", w.metrics)
	t.Run("documents", w.documents)
	t.Run("deletions", w.deletions) // the last
}

// Without the gate, both servers ignore the parameter.
func TestWithoutTheGate(t *testing.T) {
	w := start(t)
	for _, selector := range append(invalid[:5:5], valid[1:9]...) {
		w.get(t, where(configMaps, selector))
		w.get(t, where(kites+"&limit=2", selector))
	}
	w.watch(t, watch{path: where(configMaps, invalid[0])})
	w.documents(t)
	w.same(t, func(*side) wire.Step {
		return wire.Step{Method: "DELETE", Path: where("/api/v1/namespaces/b-shards/configmaps?labelSelector=test%3Dshards", valid[7])}
	})
	w.get(t, configMaps)
}

func (w *world) invalid(t *testing.T) {
	for _, selector := range invalid {
		w.get(t, where(configMaps, selector))
	}
	for _, selector := range []string{" ", "x"} {
		for _, path := range []string{
			kites, configMaps + "&watch=1", kites + "&watch=1", "/api/v1/watch/configmaps?a=b", "/api/v1/namespaces/a-shards/configmaps/a?a=b", "/api/v1/componentstatuses?fieldSelector=metadata.name%3Dscheduler",
			configMaps + "&resourceVersion=x", configMaps + "&watch=1&resourceVersion=x", configMaps + "&continue=x", configMaps + "&fieldSelector=x", configMaps + "&limit=x",
			configMaps + "&resourceVersionMatch=x", configMaps + "&watch=1&resourceVersion=1", "/api/v1/namespaces/none/configmaps?a=b", "/apis/authentication.k8s.io/v1/tokenreviews?a=b",
		} {
			w.get(t, where(path, selector))
		}
		w.same(t, func(*side) wire.Step {
			return wire.Step{Method: "DELETE", Path: where("/api/v1/namespaces/a-shards/configmaps?a=b", selector)}
		})
		w.same(t, func(*side) wire.Step {
			return wire.Step{Method: "DELETE", Path: where("/api/v1/namespaces/a-shards/configmaps?a=b", selector), Body: []byte("{")}
		})
	}
}

func (w *world) lists(t *testing.T) {
	for _, selector := range valid {
		for _, path := range []string{configMaps, leases, kites} {
			w.get(t, where(path, selector))
			w.get(t, where(path+"&limit=3", selector))
			w.get(t, where(path+"&resourceVersion=0", selector))
		}
		w.get(t, where(configMaps+"&fieldSelector=metadata.name%3Da", selector))
		w.get(t, where(configMaps+"&fieldSelector=metadata.namespace%3Db-shards,metadata.name%3Da", selector))
		w.get(t, where("/api/v1/namespaces/d-shards/configmaps?a=b", selector))
		w.get(t, where("/api/v1/namespaces?labelSelector=test%3Dshards", selector))
		w.get(t, where(servers.Definitions+"?fieldSelector=metadata.name%3Dkites.shards.example.com", selector), accept("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"))
	}
	for _, selector := range []string{valid[7], valid[11], valid[13]} {
		for _, media := range []string{
			"application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf",
			"application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
			"application/cbor;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		} {
			for _, path := range []string{configMaps, kites, configMaps + "&limit=1", configMaps + "&pretty=1"} {
				w.get(t, where(path, selector), accept(media))
			}
		}
	}
}

// pages follows continue tokens, also with another selector than the first page.
func (w *world) pages(t *testing.T) {
	for _, selector := range valid {
		for _, path := range []string{configMaps + "&limit=2", kites + "&limit=3"} {
			tokens := map[*side]string{w.theirs: "", w.ours: ""}
			for range 2 * namespaces {
				theirs, ours := w.same(t, func(x *side) wire.Step {
					return wire.Step{Method: "GET", Path: where(path, selector) + "&continue=" + url.QueryEscape(tokens[x])}
				})
				tokens[w.theirs], _ = metadata(theirs)["continue"].(string)
				tokens[w.ours], _ = metadata(ours)["continue"].(string)
				if tokens[w.theirs] == "" || tokens[w.ours] == "" {
					break
				}
			}
		}
	}
	tokens := map[*side]string{}
	for _, x := range []*side{w.theirs, w.ours} {
		tokens[x], _ = metadata(x.do(t, wire.Step{Method: "GET", Path: where(configMaps+"&limit=2", valid[9])}))["continue"].(string)
	}
	for _, selector := range valid {
		w.same(t, func(x *side) wire.Step {
			return wire.Step{Method: "GET", Path: where(configMaps, selector) + "&limit=5&continue=" + url.QueryEscape(tokens[x])}
		})
	}
}

// uids compares the shards by UID of each server with the hashes of its UIDs.
func (w *world) uids(t *testing.T) {
	ends := []string{zero, quarter, half, "0x8000000000000001", "0xc000000000000000", full}
	for name, x := range map[string]*side{"Kubernetes": w.theirs, "anykind": w.ours} {
		for _, path := range []string{configMaps, kites} {
			all := uidsOf(x.do(t, wire.Step{Method: "GET", Path: path}))
			for i, start := range ends[:len(ends)-1] {
				want := slices.DeleteFunc(slices.Clone(all), func(uid string) bool {
					hash := "0x" + sharding.HashField(uid)
					return sharding.HexLess(hash, start) || !sharding.HexLess(hash, ends[i+1])
				})
				if got := uidsOf(x.do(t, wire.Step{Method: "GET", Path: where(path, shard(byUID, start, ends[i+1]))})); !slices.Equal(got, want) {
					t.Errorf("%s, %s from %s: got %v, want %v", name, path, start, got, want)
				}
			}
		}
	}
}

func uidsOf(a *wire.Answer) (uids []string) {
	var list struct {
		Items []struct{ Metadata struct{ UID string } }
	}
	_ = json.Unmarshal(a.Body, &list) // other bodies have none
	for _, i := range list.Items {
		uids = append(uids, i.Metadata.UID)
	}
	return uids
}

// A watch is a watch of both servers.
type watch struct {
	path   string
	accept string // "" for JSON
	now    bool   // from the present state, not since the start
}

func (o watch) step(x *side) wire.Step {
	s := wire.Step{Method: "GET", Path: o.path + "&watch=1&timeoutSeconds=2"}
	if !o.now {
		s.Path += "&resourceVersion=" + x.since
	}
	if o.accept != "" {
		s.Header = []wire.Field{accept(o.accept)}
	}
	return s
}

// watch compares the events of watches that are open at the same time.
func (w *world) watch(t *testing.T, watches ...watch) {
	t.Helper()
	answers := make([][2]*wire.Answer, len(watches))
	var wait sync.WaitGroup
	for i, o := range watches {
		for j, x := range []*side{w.theirs, w.ours} {
			wait.Go(func() { answers[i][j] = x.do(t, o.step(x)) })
		}
	}
	wait.Wait()
	for i, o := range watches {
		w.compare(t, o.step(w.theirs), answers[i][0], answers[i][1])
	}
}

func (w *world) watches(t *testing.T) {
	for n := range namespaces {
		for _, x := range []*side{w.theirs, w.ours} {
			at := "/api/v1/namespaces/" + namespace(n) + "/configmaps"
			merge := []wire.Field{{Name: "Content-Type", Value: "application/merge-patch+json"}}
			for _, s := range []wire.Step{
				{Method: "PATCH", Path: at + "/a", Body: []byte(`{"data":{"a":"b"}}`), Header: merge},
				{Method: "PATCH", Path: at + "/a", Body: []byte(`{"metadata":{"labels":{"test":null}}}`), Header: merge},
				{Method: "DELETE", Path: at + "/b"},
				{Method: "POST", Path: at, Body: []byte(`{"metadata":{"name":"b","labels":{"test":"shards"}}}`)},
			} {
				if a := x.do(t, s); a.Code/100 != 2 {
					t.Fatalf("%s %s: %d %s", s.Method, s.Path, a.Code, a.Body)
				}
			}
		}
	}
	const initial = "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	watches := []watch{
		{path: where(configMaps+"&fieldSelector=metadata.name%3Db", valid[7])},
		{path: where("/api/v1/namespaces/"+namespace(1)+"/configmaps?a=b", valid[9])},
		{path: where("/api/v1/watch/configmaps?labelSelector=test%3Dshards", valid[7])},
		{path: where(configMaps, valid[7]), accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
		{path: where(kites, valid[9]), accept: "application/json;as=Table;v=v1;g=meta.k8s.io"},
	}
	for _, selector := range valid[7:] {
		for _, path := range []string{configMaps, kites} {
			watches = append(watches, watch{path: where(path, selector)}, watch{path: where(path, selector), now: true}, watch{path: where(path, selector) + initial, now: true})
		}
	}
	w.watch(t, watches...)
}

// metrics compares the counts of objects outside the shards of all watches of custom objects so far.
func (w *world) metrics(t *testing.T) {
	count := func(x *side) (lines []string) {
		for line := range strings.Lines(string(x.do(t, wire.Step{Method: "GET", Path: "/metrics"}).Body)) {
			// The gauge apiserver_watch_shards_total of Kubernetes counts the end of a watch twice.
			if strings.HasPrefix(line, `apiserver_watch_filtered_events_total{group="shards.example.com",resource="kites"}`) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if theirs, ours := count(w.theirs), count(w.ours); len(theirs) != 1 || !slices.Equal(theirs, ours) {
		t.Errorf("Kubernetes %q\nanykind    %q", theirs, ours)
	}
}

// documents compares the parts of OpenAPI and discovery about the parameter.
func (w *world) documents(t *testing.T) {
	for _, path := range []string{"/openapi/v3/api/v1", "/openapi/v3/apis/shards.example.com/v1"} {
		var found [2][]string
		for i, x := range []*side{w.theirs, w.ours} {
			var document struct {
				Paths      map[string]json.RawMessage
				Components struct{ Schemas map[string]json.RawMessage }
			}
			if err := json.Unmarshal(x.do(t, wire.Step{Method: "GET", Path: path}).Body, &document); err != nil {
				t.Fatal(err)
			}
			for _, parts := range []map[string]json.RawMessage{document.Paths, document.Components.Schemas} {
				for _, name := range slices.Sorted(maps.Keys(parts)) {
					if n := strings.Count(string(parts[name]), "hardSelector\"") + strings.Count(string(parts[name]), "ShardInfo\""); n > 0 {
						found[i] = append(found[i], fmt.Sprint(name, " ", n))
					}
				}
			}
		}
		if len(found[0]) == 0 || !slices.Equal(found[0], found[1]) {
			t.Errorf("%s: Kubernetes %v, anykind %v", path, found[0], found[1])
		}
	}
	w.get(t, "/apis/shards.example.com/v1")
}

func (w *world) deletions(t *testing.T) {
	for n, selector := range valid {
		at := "/api/v1/namespaces/" + namespace(n%namespaces) + "/configmaps?labelSelector=test%3Dshards"
		w.same(t, func(*side) wire.Step { return wire.Step{Method: "DELETE", Path: where(at+"&dryRun=All", selector)} })
		w.same(t, func(*side) wire.Step { return wire.Step{Method: "DELETE", Path: where(at, selector)} })
		kites := "/apis/shards.example.com/v1/namespaces/" + namespace(n%namespaces) + "/kites?labelSelector=test%3Dshards"
		w.same(t, func(*side) wire.Step { return wire.Step{Method: "DELETE", Path: where(kites, selector)} })
	}
	w.get(t, configMaps)
	w.get(t, kites)
}
