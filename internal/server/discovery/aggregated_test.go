package discovery

import (
	"crypto/sha512"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
)

const acceptAggregated = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

func TestAggregated(t *testing.T) {
	h, _ := newHandler(t, Options{})
	const all = `["create","delete","deletecollection","get","list","patch","update","watch"]`
	const customAll = `["delete","deletecollection","get","list","patch","create","update","watch"]`
	for path, want := range map[string]string{
		"/api": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[` +
			`{"resource":"configmaps","responseKind":{"group":"","version":"","kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap","verbs":` + all + `,"shortNames":["cm"]},` +
			`{"resource":"namespaces","responseKind":{"group":"","version":"","kind":"Namespace"},"scope":"Cluster","singularResource":"namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"subresources":[` +
			`{"subresource":"finalize","responseKind":{"group":"","version":"","kind":"Namespace"},"verbs":["update"]},` +
			`{"subresource":"status","responseKind":{"group":"","version":"","kind":"Namespace"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]}]}`,
		"/apis": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[` +
			`{"metadata":{"name":"apiextensions.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"customresourcedefinitions","responseKind":{"group":"","version":"","kind":"CustomResourceDefinition"},"scope":"Cluster","singularResource":"customresourcedefinition","verbs":` + all + `,"shortNames":["crd","crds"],"categories":["api-extensions"],"subresources":[` +
			`{"subresource":"status","responseKind":{"group":"","version":"","kind":"CustomResourceDefinition"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]},` +
			`{"metadata":{"name":"coordination.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"leases","responseKind":{"group":"","version":"","kind":"Lease"},"scope":"Namespaced","singularResource":"lease","verbs":` + all + `}],"freshness":"Current"}]},` +
			`{"metadata":{"name":"disc.anykind.dev"},"versions":[{"version":"v1","resources":[` +
			`{"resource":"kites","responseKind":{"group":"disc.anykind.dev","version":"v1","kind":"Kite"},"scope":"Namespaced","singularResource":"kite","verbs":` + customAll + `,"shortNames":["ki","kt"],"categories":["all","toys"],"subresources":[` +
			`{"subresource":"status","responseKind":{"group":"disc.anykind.dev","version":"v1","kind":"Kite"},"verbs":["get","patch","update"]},` +
			`{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}]},` +
			`{"resource":"skies","responseKind":{"group":"disc.anykind.dev","version":"v1","kind":"Sky"},"scope":"Cluster","singularResource":"sky","verbs":` + customAll + `}],"freshness":"Current"},` +
			`{"version":"v1beta1","resources":[{"resource":"kites","responseKind":{"group":"disc.anykind.dev","version":"v1beta1","kind":"Kite"},"scope":"Namespaced","singularResource":"kite","verbs":` + customAll + `,"shortNames":["ki","kt"],"categories":["all","toys"]}],"freshness":"Current"}]}]}`,
	} {
		w := ask(h, "GET", path, acceptAggregated)
		if got := strings.TrimSuffix(w.Body.String(), "\n"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
		header := w.Header()
		if got := header.Get("Content-Type"); got != "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" {
			t.Errorf("%s: Content-Type %q", path, got)
		}
		if header.Get("Vary") != "Accept" || header.Get("Cache-Control") != "public" {
			t.Errorf("%s: Vary %q, Cache-Control %q", path, header.Get("Vary"), header.Get("Cache-Control"))
		}
		etag := header.Get("ETag")
		if want := fmt.Sprintf("\"%X\"", sha512.Sum512(w.Body.Bytes())); etag != want {
			t.Errorf("%s: ETag %s, want %s", path, etag, want)
		}
		w = ask(h, "GET", path, acceptAggregated, "If-None-Match: "+etag)
		if w.Code != 304 || w.Body.Len() != 0 || w.Header().Get("ETag") != etag {
			t.Errorf("%s if it is not %s: %d %s", path, etag, w.Code, w.Body)
		}
	}
}

func TestWhoGetsAggregated(t *testing.T) {
	h, _ := newHandler(t, Options{})
	const json, yaml, protobuf = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
	const as = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for accept, want := range map[string]string{
		"":                              json,
		"*/*":                           json,
		json + as:                       json + as,
		json + "," + json + as:          json + as,
		json + as + ";profile=nopeer":   json + as,
		"*/*" + as:                      json + as,
		yaml + as:                       yaml + as,
		protobuf + as + "," + json + as: protobuf + as,
		json + ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," + json:       json,
		json + ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io":                    json + as,
		json + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;q=0.5," + json + as: json + as,
	} {
		w := ask(h, "GET", "/apis", "Accept: "+accept)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("Accept %q: Content-Type %q, want %q", accept, got, want)
		}
	}
	for _, path := range []string{"/apis/", "/apis/disc.anykind.dev"} {
		if w := ask(h, "GET", path, "Accept: "+json+as); w.Code != 406 {
			t.Errorf("%s: %d, want 406: it is never aggregated", path, w.Code)
		}
	}
	if w := ask(h, "GET", "/apis", "Accept: "+json+";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"); w.Code != 406 {
		t.Errorf("v2beta1: %d, want 406", w.Code)
	}
}

func TestAggregatedFollowsChanges(t *testing.T) {
	h, c := newHandler(t, Options{})
	before := ask(h, "GET", "/apis", acceptAggregated)
	core := ask(h, "GET", "/api", acceptAggregated)

	c.Swap(resource.NewSet(append(nativeDefinitions(t), custom(t, kites))))
	after := ask(h, "GET", "/apis", acceptAggregated, "If-None-Match: "+before.Header().Get("ETag"))
	if after.Code != 200 || strings.Contains(after.Body.String(), "skies") {
		t.Errorf("without skies: %d %s", after.Code, after.Body)
	}
	if w := ask(h, "GET", "/api", acceptAggregated, "If-None-Match: "+core.Header().Get("ETag")); w.Code != 304 {
		t.Errorf("the core group did not change: %d", w.Code)
	}

	c.Swap(resource.NewSet(append(nativeDefinitions(t), custom(t, skies), custom(t, kites))))
	if again := ask(h, "GET", "/apis", acceptAggregated); again.Header().Get("ETag") != before.Header().Get("ETag") {
		t.Error("the same content has another ETag")
	}
}

// The work for a changed Definition does not grow with the number of other Definitions.
func TestItemsAreReused(t *testing.T) {
	h, c := newHandler(t, Options{})
	h.aggregated(t.Context(), false)
	kept := custom(t, kites)
	c.Swap(resource.NewSet([]*resource.Definition{kept, custom(t, skies)}))
	h.aggregated(t.Context(), false)
	before := h.item(kept, kept.Versions[0])
	c.Swap(resource.NewSet([]*resource.Definition{kept}))
	h.aggregated(t.Context(), false)
	after := h.item(kept, kept.Versions[0])
	if &before[0] != &after[0] {
		t.Error("the item of an unchanged Definition was made again")
	}
	if n := h.cache.items.Len(); n != len(kept.Versions) {
		t.Errorf("%d items are kept, want those of the one Definition that is left", n)
	}
}

func TestWhatIsIdleIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newHandler(t, Options{Idle: time.Minute})
		for range 3 {
			h.aggregated(t.Context(), false)
			time.Sleep(50 * time.Second)
			h.mu.Lock()
			if h.cache.others == nil {
				t.Error("what is asked for all the time was forgotten")
			}
			h.mu.Unlock()
		}
		time.Sleep(20 * time.Second)
		h.mu.Lock()
		if h.cache.items.Len() != 0 || h.cache.others != nil || h.cache.timer != nil {
			t.Errorf("after a minute this is kept: %+v", &h.cache)
		}
		h.mu.Unlock()
		if w := ask(h, "GET", "/apis", acceptAggregated); w.Code != 200 {
			t.Error("nothing came back")
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	h, c := newHandler(t, Options{})
	var readers sync.WaitGroup
	for _, target := range []string{"/", "/api", "/apis", "/apis/disc.anykind.dev/v1"} {
		readers.Go(func() {
			for range 50 {
				if w := ask(h, "GET", target, acceptAggregated); w.Code != 200 && w.Code != 406 {
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
