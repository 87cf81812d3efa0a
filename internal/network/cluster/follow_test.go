package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/network/cluster/clustertest"
)

// heard is an observer that records its calls.
type heard chan string

func (h heard) Replace(_ context.Context, all []*metav1.PartialObjectMetadata) error {
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	h <- fmt.Sprint("all ", names)
	return nil
}

func (h heard) Set(_ context.Context, one *metav1.PartialObjectMetadata) error {
	h <- "set " + one.Name
	return nil
}

func (h heard) Delete(_ context.Context, one *metav1.PartialObjectMetadata) error {
	h <- "delete " + one.Name
	return nil
}

const folder = "/api/v1/namespaces"

// An observer gets all objects, then each change. When a watch cannot resume, it gets all objects
// again.
func TestFollow(t *testing.T) {
	server := clustertest.Start(t)
	server.Put(folder+"/a", "{}")
	h := make(heard)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cluster.Follow(ctx, server.Client(), cluster.Collection{Path: folder, MetadataOnly: true}, h, slog.New(slog.DiscardHandler))
	}()
	defer func() { cancel(); <-done }()
	want := func(what string) {
		t.Helper()
		if got := <-h; got != what {
			t.Errorf("told %q, want %q", got, what)
		}
	}
	want("all [a]")
	server.Put(folder+"/b", "{}")
	want("set b")
	server.Delete(folder + "/a")
	want("delete a")
	server.Expire()
	want("all [b]")
	server.Put(folder+"/c", "{}")
	want("set c")
	server.Break()
	want("all [b c]")
}

// An error of a server is recognized by its reason, even if the answer is not a Status.
func TestErrors(t *testing.T) {
	server := clustertest.Start(t)
	c := server.Client()
	var into metav1.PartialObjectMetadata
	if err := c.Get(t.Context(), folder+"/none", &into); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	server.Answer(folder, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusServiceUnavailable) })
	if err := c.Get(t.Context(), folder, &into); !apierrors.IsServiceUnavailable(err) {
		t.Error(err)
	}
	server.Answer(folder, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com", http.StatusFound)
	})
	if err := c.Get(t.Context(), folder, &into); err == nil || strings.Contains(err.Error(), "example.com") {
		t.Error(err)
	}
}

// deadline records whether the observer's context has a deadline.
type deadline chan bool

func (d deadline) note(ctx context.Context) error {
	_, has := ctx.Deadline()
	d <- has
	return nil
}

func (d deadline) Replace(ctx context.Context, _ []*metav1.PartialObjectMetadata) error {
	return d.note(ctx)
}
func (d deadline) Set(ctx context.Context, _ *metav1.PartialObjectMetadata) error { return d.note(ctx) }
func (d deadline) Delete(ctx context.Context, _ *metav1.PartialObjectMetadata) error {
	return d.note(ctx)
}

// The timeout of a list does not apply to the observer, which may need longer for many objects.
func TestObserverHasNoDeadline(t *testing.T) {
	server := clustertest.Start(t)
	d := make(deadline)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cluster.Follow(ctx, server.Client(), cluster.Collection{Path: folder, MetadataOnly: true}, d, slog.New(slog.DiscardHandler))
	}()
	defer func() { cancel(); <-done }()
	if <-d {
		t.Error("the observer of a list has a deadline")
	}
}
