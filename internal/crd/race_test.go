package crd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/crd"
	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// Of many who want one name at the same time exactly one gets it.
func TestNamesUnderContention(t *testing.T) {
	s := start(t)
	var winners atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			text := strings.NewReplacer("widgets", fmt.Sprintf("widgets%d", i), "Widget", fmt.Sprintf("Widget%d", i)).Replace(widgets)
			made, err := s.try(s.crds(""), text)
			if err != nil {
				t.Error(err)
			} else if strings.Contains(summary(typed(t, made)), "Established=True") {
				winners.Add(1)
			}
		})
	}
	all.Wait()
	if n := winners.Load(); n != 1 {
		t.Errorf("%d definitions got the short name", n)
	}
	if n := s.catalog.Set().Len(); n != 2 {
		t.Errorf("%d kinds are served, want the winner and the kind itself", n)
	}
}

// Nothing that is created while a definition goes away survives it, and nothing
// that was acknowledged is lost in any other way.
func TestCreateWhileDeleted(t *testing.T) {
	s := start(t)
	for round := range 4 {
		s.define(widgets)
		ctx, cancel := context.WithCancel(s.ctx())
		var creators sync.WaitGroup
		for c := range 4 {
			creators.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					d := s.catalog.Set().Lookup("example.com", "widgets")
					if d == nil {
						return
					}
					s.try(registry.StorageTarget(d, "", ""), strings.Replace(widget, "one", fmt.Sprintf("w%d-%d-%d", round, c, i), 1))
				}
			})
		}
		s.delete(s.crds("widgets.example.com"))
		s.eventually("widgets.example.com", "gone", gone)
		cancel()
		creators.Wait()
		page, err := s.store.List(s.ctx(), kv.Range{Prefix: "/registry/example.com/widgets/"})
		if err != nil || len(page.Records) > 0 {
			t.Fatalf("round %d left %d objects, %v", round, len(page.Records), err)
		}
	}
}

// The Registrar goes on after it was interrupted, and notices what it missed.
func TestInterrupted(t *testing.T) {
	s := start(t)
	s.define(widgets)
	first := s.target("example.com", "widgets", "", "").Definition
	s.cache.Forget(crd.Prefix)
	s.define(strings.ReplaceAll(gadgets, "example.com", "example.org"))
	s.target("example.org", "gadgets", "", "")
	if s.target("example.com", "widgets", "", "").Definition != first {
		t.Error("an interruption made a new Definition of what did not change")
	}
	s.delete(s.crds("widgets.example.com"))
	s.eventually("widgets.example.com", "gone", gone)
}

// failing is a registry that cannot delete at first.
type failing struct {
	crd.Objects
	left atomic.Int32
}

func (f *failing) Delete(ctx context.Context, t registry.Target, options *metav1.DeleteOptions, o registry.WriteOptions) (registry.Deletion, error) {
	if f.left.Add(-1) >= 0 {
		return registry.Deletion{}, errors.New("no luck")
	}
	return f.Objects.Delete(ctx, t, options, o)
}

func TestDeletionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		defer s.stop()
		s.failDeletes(3)
		s.define(widgets)
		if _, err := s.try(s.target("example.com", "widgets", "", ""), widget); err != nil {
			t.Fatal(err)
		}
		s.delete(s.crds("widgets.example.com"))
		s.eventually("widgets.example.com", "says that it failed", func(c *v1.CustomResourceDefinition) bool {
			return strings.Contains(summary(c), "Terminating=True InstanceDeletionFailed: could not issue all deletes: no luck")
		})
		s.eventually("widgets.example.com", "gone", gone)
	})
}

// An object that somebody does not let go is said to be in the way, and is waited
// for all the same.
func TestHeldObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		defer s.stop()
		s.define(widgets)
		target := s.target("example.com", "widgets", "default", "one")
		if _, err := s.try(target, strings.Replace(widget, "name: one", "name: one, finalizers: [example.com/hold]", 1)); err != nil {
			t.Fatal(err)
		}
		s.delete(s.crds("widgets.example.com"))
		began := time.Now()
		s.eventually("widgets.example.com", "says that it takes long", func(c *v1.CustomResourceDefinition) bool {
			return strings.Contains(summary(c), "Terminating=True InstanceDeletionCheck: could not confirm zero CustomResources remaining: context deadline exceeded")
		})
		if d := time.Since(began); d != time.Minute {
			t.Errorf("said so after %v, want a minute", d)
		}
		target = s.target("example.com", "widgets", "default", "one")
		for {
			_, err := s.objects.Modify(s.ctx(), target, func(old object.Tree) (object.Tree, error) {
				released := object.CloneTree(old)
				object.SetFinalizers(released, nil)
				return released, nil
			}, registry.WriteOptions{})
			if err == nil {
				break
			}
			if !errors.Is(err, registry.ErrStale) {
				t.Fatal(err)
			}
			s.fresh()
		}
		s.eventually("widgets.example.com", "gone", gone)
	})
}
