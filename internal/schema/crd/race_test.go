package crd_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/schema/crd"
)

// Of many concurrent definitions with the same name, exactly one gets it.
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

// The Registrar continues after an interruption, and finds the changes in between.
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
