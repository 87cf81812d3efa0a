package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/network/cluster/clustertest"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A store has the copies of a cluster's namespaces.
type store struct {
	*testing.T
	*Namespaces
}

func open(t *testing.T, s *clustertest.Server) *store {
	d := resource.New(resource.Definition{Plural: "namespaces", Kind: "Namespace", StoragePrefix: resource.BuiltInPrefix("namespaces"),
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true}}})
	return &store{T: t, Namespaces: &Namespaces{Cluster: s.Client(), Backend: memkv.New(memkv.Options{}), Kind: d, Log: slog.New(slog.DiscardHandler)}}
}

// copy returns the copy of a namespace, or nil.
func (s *store) copy(name string) *corev1.Namespace {
	s.Helper()
	record, err := s.Backend.Get(s.Context(), s.Kind.Key("", name), kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	var n corev1.Namespace
	if err == nil {
		err = json.Unmarshal(record.Value, &n)
	}
	if err != nil {
		s.Fatal(err)
	}
	return &n
}

const prefix = "/api/v1/namespaces/"

// Copies equal their namespaces; a terminating copy stays until it is empty; objects of a
// vanished namespace stay.
func TestNamespaces(t *testing.T) {
	server := clustertest.Start(t)
	s := open(t, server)
	told := func(name, text string) *metav1.PartialObjectMetadata {
		server.Put(prefix+name, text)
		var found metav1.PartialObjectMetadata
		if err := s.Cluster.Get(t.Context(), prefix+name, &found); err != nil {
			t.Fatal(err)
		}
		return &found
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	must(s.Set(t.Context(), told("shop", `metadata: {uid: one, labels: {a: b}, finalizers: [theirs]}`)))
	n := s.copy("shop")
	if n == nil || n.UID != "one" || n.Labels["a"] != "b" || len(n.Finalizers) > 0 || len(n.Spec.Finalizers) != 1 || n.Status.Phase != corev1.NamespaceActive {
		t.Fatalf("%+v", n)
	}
	before, err := s.Backend.Revision(t.Context())
	must(err)
	must(s.Set(t.Context(), told("shop", `metadata: {uid: one, labels: {a: b}}`)))
	if after, err := s.Backend.Revision(t.Context()); err != nil || after != before {
		t.Errorf("a copy that is the same was written again: %v", err)
	}
	must(s.Set(t.Context(), told("shop", `metadata: {uid: one, labels: {a: c}}`)))
	if n := s.copy("shop"); n.Labels["a"] != "c" {
		t.Errorf("%v", n.Labels)
	}

	must(s.Set(t.Context(), told("shop", `metadata: {uid: one, deletionTimestamp: "2026-01-01T00:00:00Z"}`)))
	if n := s.copy("shop"); n.DeletionTimestamp == nil || n.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("%+v", n)
	}
	must(s.Set(t.Context(), told("shop", `metadata: {uid: two}`)))
	if n := s.copy("shop"); n.DeletionTimestamp == nil || n.UID != "one" {
		t.Errorf("one that is being emptied was forgotten: %+v", n)
	}

	must(s.Set(t.Context(), told("gone", `metadata: {uid: three}`)))
	must(s.Delete(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "gone", UID: "three"}}))
	if n := s.copy("gone"); n.DeletionTimestamp == nil {
		t.Errorf("what is left in a namespace that was deleted stays: %+v", n)
	}
	must(s.Set(t.Context(), told("lost", `metadata: {uid: four}`)))
	server.Delete(prefix + "lost")
	must(s.Set(t.Context(), told("kept", `metadata: {uid: five}`)))
	must(s.Replace(t.Context(), nil)) // the list is from before "kept" was created
	if s.copy("lost") != nil || s.copy("kept") == nil || s.copy("shop") == nil {
		t.Error("the copy of a namespace that is not there stays, or another one went")
	}
}

// A namespace without a copy is requested from the cluster.
func TestAsk(t *testing.T) {
	server := clustertest.Start(t)
	s := open(t, server)
	server.Put(prefix+"new", `{}`)
	server.Put(prefix+"going", `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`)
	for _, tt := range []struct {
		name                     string
		exists, deleting, copied bool
	}{{"new", true, false, true}, {"going", true, true, false}, {"none", false, false, false}} {
		exists, deleting, err := s.Ask(t.Context(), tt.name)
		if err != nil || exists != tt.exists || deleting != tt.deleting || (s.copy(tt.name) != nil) != tt.copied {
			t.Errorf("%s: %t, %t, %v", tt.name, exists, deleting, err)
		}
	}
}

// Copies follow the cluster.
func TestFollow(t *testing.T) {
	server := clustertest.Start(t)
	s := open(t, server)
	server.Put(prefix+"first", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Follow(ctx) }()
	for s.copy("first") == nil {
		runtime.Gosched()
	}
	server.Put(prefix+"second", `{}`)
	for s.copy("second") == nil {
		runtime.Gosched()
	}
	server.Delete(prefix + "second")
	for s.copy("second").DeletionTimestamp == nil {
		runtime.Gosched()
	}
	cancel()
	<-done
}
