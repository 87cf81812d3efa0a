//go:build !race

// The race detector changes the memory that a list takes.

package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/store/kv"
)

// A deaf client reads the first chunk of its answer, and nothing more until it is gone.
type deaf struct {
	*httptest.ResponseRecorder
	reads chan<- struct{}
	gone  <-chan struct{}
}

func (d deaf) Write(data []byte) (int, error) {
	d.reads <- struct{}{}
	<-d.gone
	return 0, http.ErrAbortHandler
}

// A list in progress takes the memory of a chunk, whatever its length and its client: many clients may
// read large lists at a time, and slowly.
func TestHeldLists(t *testing.T) {
	const objects, clients, most = 8_000, 20, 256 << 10
	s := newServerOf(t, builtin.Definitions()...)
	for i := range objects {
		name := fmt.Sprintf("m%05d", i)
		value := fmt.Sprintf(`{"apiVersion":"v1","data":{"i":"%d"},"kind":"ConfigMap","metadata":{"labels":{"a":"b"},"name":"%s","namespace":"default","uid":"%d"}}`, i, name, i)
		if _, err := s.backend.Commit(t.Context(), kv.Write{Key: "/registry/configmaps/default/" + name, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, accept := range map[string]string{
		"JSON":     "application/json",
		"protobuf": "application/vnd.kubernetes.protobuf",
		"YAML":     "application/yaml",
		"Table":    "application/json;as=Table;g=meta.k8s.io;v=v1",
		"metadata": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	} {
		for _, encoding := range []string{"gzip", "identity"} {
			list := func(ctx context.Context, w http.ResponseWriter) {
				r := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/configmaps", nil)
				r.Header.Set("Accept", accept)
				r.Header.Set("Accept-Encoding", encoding)
				defer func() { _ = recover() }() // of an answer that is broken off
				s.handler.ServeHTTP(w, r)
			}
			list(t.Context(), httptest.NewRecorder()) // computes what the lists share
			reads, gone := make(chan struct{}), make(chan struct{})
			before := live()
			var wait sync.WaitGroup
			for range clients {
				wait.Go(func() { list(t.Context(), deaf{httptest.NewRecorder(), reads, gone}) })
			}
			for range clients {
				<-reads
			}
			each := (live() - before) / clients
			close(gone)
			wait.Wait()
			t.Logf("%s, %s: a list of %d objects in progress takes %d kB", name, encoding, objects, each>>10)
			if each > most {
				t.Errorf("%s, %s: a list of %d objects in progress takes %d kB, more than %d", name, encoding, objects, each>>10, most>>10)
			}
		}
	}
}

// live returns the bytes of the reachable objects.
func live() int64 {
	runtime.GC()
	runtime.GC() // empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
