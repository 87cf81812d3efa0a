package rest_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/memkv"
)

const (
	lowerShard = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	upperShard = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

func newShardingServer(t *testing.T, on bool) *server {
	kinds := slices.Concat(builtin.Definitions(), []*resource.Definition{lead()})
	return newServerServing(t, memkv.New(memkv.Options{}), registry.Options{}, rest.Options{Gates: gate.With(map[gate.Name]bool{gate.ShardedListAndWatch: on})}, kinds...)
}

// of returns a path with a shard selector.
func of(path, selector string) string {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + "shardSelector=" + url.QueryEscape(selector)
}

// fill stores ConfigMaps: a and c have UIDs with a hash in the lower half, b in the upper one.
func (s *server) fill() {
	s.t.Helper()
	for name, uid := range map[string]string{"a": "third", "b": "second", "c": "00000001-0000-4000-8000-000000000000"} {
		s.store("/registry/configmaps/default/"+name, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`","namespace":"default","uid":"`+uid+`"}}`)
		s.store("/registry/test.example.com/leads/default/"+name, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"`+name+`","namespace":"default","uid":"`+uid+`"}}`)
	}
}

// Without the gate, the parameter has no effect, valid or not.
func TestShardSelectorWithoutTheGate(t *testing.T) {
	s := newShardingServer(t, false)
	s.fill()
	for _, selector := range []string{lowerShard, "nonsense"} {
		got := s.get(of(configMaps, selector)).is(200)
		if got.names() != "a b c" || strings.Contains(got.body, "shardInfo") {
			t.Errorf("%s: %s", selector, got.body)
		}
	}
	expect(t, s.watch(of(configMaps+"?watch=1", "nonsense")), "ADDED a", "ADDED b", "ADDED c")
	if got := s.delete(of(configMaps, "nonsense"), "").is(200); got.names() != "a b c" {
		t.Errorf("deleted %s", got.body)
	}
}

func TestShardedList(t *testing.T) {
	s := newShardingServer(t, true)
	s.fill()
	for selector, want := range map[string]string{lowerShard: "a c", upperShard: "b", lowerShard + "||" + upperShard: "a b c"} {
		got := s.get(of(configMaps, selector)).is(200, `"shardInfo":{"selector":"`+strings.ReplaceAll(selector, "||", " || ")+`"}`)
		if got.names() != want {
			t.Errorf("%s has %s, want %s", selector, got.names(), want)
		}
		got = s.get(of(leads, selector)).is(200)
		if got.names() != want || strings.Contains(got.body, "shardInfo") {
			t.Errorf("custom objects of %s: %s", selector, got.body)
		}
	}
	page := s.get(of(configMaps+"?limit=1", lowerShard)).is(200)
	metadata := page.tree()["metadata"].(object.Tree)
	if page.names() != "a" || metadata["remainingItemCount"] != nil {
		t.Errorf("the first page is %s", page.body)
	}
	page = s.get(of(configMaps+"?limit=1&continue="+metadata["continue"].(string), lowerShard)).is(200, "shardInfo")
	if page.names() != "c" || strings.Contains(page.body, "continue") {
		t.Errorf("the second page is %s", page.body)
	}
	s.get(of(configMaps, "")).is(200, `"b"`)
	s.get(of(configMaps+"/b", "nonsense")).is(200)
	s.get(of(configMaps+"?fieldSelector=nonsense", "nonsense")).is(400)
	s.get(of("/api/v1/componentstatuses", "nonsense")).is(200)
	for _, path := range []string{configMaps, configMaps + "?resourceVersion=x", configMaps + "?watch=1&resourceVersion=x", "/api/v1/watch/configmaps"} {
		s.get(of(path, "nonsense")).message(500, "invalid shard selector: unexpected expression kind 3; expected shardRange() call or || operator")
	}
	s.delete(of(configMaps, "nonsense"), "").is(500)
	if got := s.delete(of(configMaps, lowerShard), "").is(200, "shardInfo"); got.names() != "a c" {
		t.Errorf("deleted %s", got.body)
	}
	if got := s.get(configMaps); got.names() != "b" {
		t.Errorf("%s is left", got.names())
	}
}

// Only whole lists of Go types say which shard they have, in each media type.
func TestShardInfoByMediaType(t *testing.T) {
	s := newShardingServer(t, true)
	s.fill()
	plain, offer := s.handler, codec.Offer{CBOR: true}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain.ServeHTTP(w, r.WithContext(offer.Context(r.Context())))
	})
	for accept, shown := range map[string]bool{
		"application/json": true, "application/yaml": true, "application/cbor": true, protobuf: true,
		"application/json" + asTable: false, "application/json" + asMetadatas: false, "application/cbor" + asMetadatas: false, protobuf + asMetadatas: false,
	} {
		got := s.accept(accept, "GET", of(configMaps, lowerShard), "", "").is(200)
		if strings.Contains(got.body, "shardRange(") != shown || strings.Contains(got.body, "second") {
			t.Errorf("%s: %q", accept, got.body)
		}
	}
}

func TestShardedWatch(t *testing.T) {
	s := newShardingServer(t, true)
	s.fill()
	metrics := prometheus.NewPedanticRegistry()
	for _, c := range s.handler.(*rest.Handler).Collectors() {
		metrics.MustRegister(c)
	}
	next := s.watch(of(configMaps+"?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", lowerShard))
	expect(t, next, "ADDED a", "ADDED c", "BOOKMARK true")
	s.merge(configMaps+"/b", `{"data":{"a":"x"}}`).is(200)
	s.delete(configMaps+"/b", "").is(200)
	s.merge(configMaps+"/c", `{"data":{"a":"x"}}`).is(200)
	s.delete(configMaps+"/a", "").is(200)
	expect(t, next, "MODIFIED c", "DELETED a")
	got := map[string]float64{}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	// Outside is b: as an initial object, before and after its change, and before its deletion.
	if got["apiserver_watch_shards_total"] != 1 || got["apiserver_watch_filtered_events_total"] != 4 {
		t.Errorf("metrics: %v", got)
	}
}
