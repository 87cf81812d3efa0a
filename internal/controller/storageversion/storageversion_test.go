package storageversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/registry"
)

// in runs a test with two servers of one store. The Lease of the first one does not exist yet.
func in(t *testing.T, test func(w *controllertest.World, first, second *Barrier)) {
	synctest.Test(t, func(t *testing.T) {
		var first, second *Barrier
		var of []controller.Descriptor
		for id, b := range map[string]**Barrier{"first": &first, "second": &second} {
			of = append(of, controller.Descriptor{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
				*b = NewBarrier(o.Catalog.Set())
				return New(id, *b)(o, q)
			}})
		}
		w := controllertest.New(t, of)
		w.Start()
		w.Create("namespace kube-system")
		w.Wait()
		test(w, first, second)
	})
}

func statusOf(w *controllertest.World, name string) internalv1alpha1.StorageVersionStatus {
	w.T.Helper()
	w.Wait()
	t := w.Get("storageversion " + name)
	if t == nil {
		w.T.Fatalf("there is no StorageVersion %s", name)
	}
	return kind.ValueOf[internalv1alpha1.StorageVersion](t).Status
}

// Servers publish once they have a Lease, agree on a version, and restore a changed entry. Without a change, they write
// nothing.
func TestPublished(t *testing.T) {
	in(t, func(w *controllertest.World, first, _ *Barrier) {
		if w.Get("storageversion apps.deployments") != nil || first.Ready(w.Ctx) == nil {
			t.Error("a server without a Lease publishes")
		}
		w.Create("lease kube-system/first")
		s := statusOf(w, "apps.deployments")
		want := internalv1alpha1.ServerStorageVersion{
			APIServerID: "first", EncodingVersion: "apps/v1", DecodableVersions: []string{"apps/v1", "apps/v1beta2", "apps/v1beta1"}, ServedVersions: []string{"apps/v1"},
		}
		if len(s.StorageVersions) != 1 || fmt.Sprint(s.StorageVersions[0]) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", s.StorageVersions, want)
		}
		if c := s.Conditions[0]; *s.CommonEncodingVersion != "apps/v1" || c.Status != "True" || c.Reason != "CommonEncodingVersionSet" || c.Message != "Common encoding version set" {
			t.Errorf("%v, %v", *s.CommonEncodingVersion, c)
		}
		before := w.Get("storageversion apps.deployments")
		w.Sleep(interval + time.Minute)
		if !object.Equal(before, w.Get("storageversion apps.deployments")) {
			t.Error("a StorageVersion changed without a reason")
		}
		w.Create("lease kube-system/second")
		if s := statusOf(w, "apps.deployments"); len(s.StorageVersions) != 2 || *s.CommonEncodingVersion != "apps/v1" {
			t.Errorf("two servers: %v", s)
		}
		since := statusOf(w, "apps.deployments").Conditions[0].LastTransitionTime
		w.Delete("storageversion core.pods", "")
		w.Sleep(interval + time.Minute)
		if s := statusOf(w, "core.pods"); len(s.StorageVersions) != 2 {
			t.Errorf("restored: %v", s)
		}
		if at := statusOf(w, "apps.deployments").Conditions[0].LastTransitionTime; !at.Equal(&since) {
			t.Errorf("the condition is of %v, want %v", at, since)
		}
	})
}

// Servers with other storage versions have no version in common.
func TestDisagreement(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := now.Add(time.Hour)
	v1, v2 := &record{encoding: "g/v1", decodable: []string{"g/v1"}}, &record{encoding: "g/v2", decodable: []string{"g/v2", "g/v1"}}
	var s internalv1alpha1.StorageVersionStatus
	for _, step := range []struct {
		server string
		r      *record
		at     time.Time
		want   string
	}{
		{"a", v1, now, "g/v1 True CommonEncodingVersionSet 03"},
		{"b", v2, later, " False CommonEncodingVersionUnset 04"},
		{"b", v2, later.Add(time.Hour), " False CommonEncodingVersionUnset 04"},
		{"a", v2, later.Add(2 * time.Hour), "g/v2 True CommonEncodingVersionSet 06"},
	} {
		update(&s, step.server, step.r, 0, step.at)
		common := ""
		if s.CommonEncodingVersion != nil {
			common = *s.CommonEncodingVersion
		}
		c := s.Conditions[0]
		if got := fmt.Sprintf("%s %s %s %02d", common, c.Status, c.Reason, c.LastTransitionTime.UTC().Hour()); got != step.want || len(s.Conditions) != 1 || len(s.StorageVersions) > 2 {
			t.Errorf("%s, want %s", got, step.want)
		}
	}
	var lone internalv1alpha1.StorageVersionStatus
	update(&lone, "a", v1, 0, now)
	update(&lone, "a", v2, 0, later)
	if c := lone.Conditions[0]; !c.LastTransitionTime.Time.Equal(later) {
		t.Errorf("another common version counts from %v", c.LastTransitionTime)
	}
}

// A Barrier rejects writes of a resource until its storage versions are published. Reads, other resources, StorageVersions
// and the Leases of kube-system pass.
func TestBarrier(t *testing.T) {
	in(t, func(w *controllertest.World, first, second *Barrier) {
		var room atomic.Bool
		w.Admit = func(a *registry.Admission) error {
			if a.Target.Name == "core.pods" && !room.Load() {
				return errors.New("no room")
			}
			return nil
		}
		info := func(verb, group, resource, namespace string) *request.Info {
			return &request.Info{IsResource: true, Verb: verb, Group: group, Resource: resource, Namespace: namespace}
		}
		held := func(b *Barrier) string {
			w.Wait()
			var held []string
			for name, i := range map[string]*request.Info{
				"read":     info("list", "", "pods", "dev"),
				"pod":      info("create", "", "pods", "dev"),
				"node":     info("patch", "", "nodes", ""),
				"events":   info("create", "events.k8s.io", "events", "dev"),
				"lease":    info("update", "coordination.k8s.io", "leases", "dev"),
				"election": info("update", "coordination.k8s.io", "leases", "kube-system"),
				"version":  info("create", "internal.apiserver.k8s.io", "storageversions", ""),
				"custom":   info("create", "test.example.com", "others", "dev"),
				"review":   info("create", "authentication.k8s.io", "tokenreviews", ""),
				"page":     {Verb: "post"},
			} {
				if b.Check(i) != nil {
					held = append(held, name)
				}
			}
			slices.Sort(held)
			return strings.Join(held, " ")
		}
		if got := held(first); got != "events lease node pod" {
			t.Errorf("at the start, these wait: %s", got)
		}
		w.Create("lease kube-system/first")
		if got := held(first); got != "pod" {
			t.Errorf("with an error, these wait: %s", got)
		}
		err := first.Check(info("create", "", "pods", "dev"))
		if want := "wait for storage version registration to complete for resource: pods, last seen error: "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "no room") {
			t.Errorf("%v, want %s", err, want)
		}
		room.Store(true)
		w.Sleep(time.Minute)
		if got := held(first); got != "" || first.Ready(w.Ctx) != nil {
			t.Errorf("once all are published, these wait: %s", got)
		}
		if got := held(second); got == "" {
			t.Error("the other server does not wait")
		}
		second.Release()
		if got := held(second); got != "" {
			t.Errorf("once released, these wait: %s", got)
		}
		var none *Barrier
		if err := none.Check(info("create", "", "pods", "dev")); err != nil {
			t.Error(err)
		}
	})
}

// Events are served in two groups and stored once.
func TestEquivalentResources(t *testing.T) {
	in(t, func(w *controllertest.World, _, _ *Barrier) {
		w.Create("lease kube-system/first")
		text, err := json.Marshal(statusOf(w, "core.events").StorageVersions)
		if want := `[{"apiServerID":"first","encodingVersion":"v1","decodableVersions":["v1","events.k8s.io/v1"],"servedVersions":["v1"]}]`; string(text) != want {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
		if w.Get("storageversion events.k8s.io.events") != nil {
			t.Error("Events have two StorageVersions")
		}
		if s := statusOf(w, "apiextensions.k8s.io.customresourcedefinitions"); s.StorageVersions[0].EncodingVersion != "apiextensions.k8s.io/v1beta1" {
			t.Errorf("definitions: %v", s)
		}
	})
}
