package recording_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/server/openapi"
)

// The OpenAPI documents of all kinds are large and rarely requested. A small part of them stays
// cached between requests, and nothing after the last one.
func TestOpenAPIMemory(t *testing.T) { synctest.Test(t, testOpenAPIMemory) }

func testOpenAPIMemory(t *testing.T) {
	const idle = time.Minute
	kinds := catalog(allKinds(t, recorded(t, "kinds.txt")))
	h := openapi.New(kinds, openapi.Options{Idle: idle})
	get := func(path, accept string) []byte {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Accept", accept)
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	fetch := func() (size int64) {
		var list struct{ Paths map[string]any }
		if err := json.Unmarshal(get("/openapi/v3", ""), &list); err != nil {
			t.Fatal(err)
		}
		for name := range list.Paths {
			for _, form := range []string{"application/json", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"} {
				size += int64(len(get("/openapi/v3/"+name, form)))
			}
		}
		for _, form := range []string{"application/json", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"} {
			get("/openapi/v2", form)
		}
		return size
	}
	fetch() // create long-lived values now
	time.Sleep(3 * idle)
	before := heap()
	size := fetch()
	kept := heap() - before
	time.Sleep(3 * idle)
	left := heap() - before
	t.Logf("of documents of %d kB, %d kB are kept, and then %d kB; other heap is %d kB", size>>10, kept>>10, left>>10, before>>10)
	if kept > size/4 {
		t.Errorf("%d bytes are kept of %d", kept, size)
	}
	if left > before/20 {
		t.Errorf("%d bytes are left beside %d", left, before)
	}
	runtime.KeepAlive(h)
	runtime.KeepAlive(kinds)
}

// heap returns the size of the heap.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second cycle empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
