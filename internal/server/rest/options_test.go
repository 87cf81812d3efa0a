package rest_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

type validatorFunc func(*registry.Admission)

func (v validatorFunc) Validate(_ context.Context, a *registry.Admission) error { v(a); return nil }

// Admission gets the options of the client, without the defaults of the server.
func TestOptionsOfAdmission(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	defer backend.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cache := watchcache.New(backend, watchcache.Options{})
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	defer func() { cancel(); <-done }()

	var catalog resource.Catalog
	catalog.Swap(resource.NewSet([]*resource.Definition{lead()}))
	var seen *metav1.CreateOptions
	validators := []registry.Validator{validatorFunc(func(a *registry.Admission) { seen, _ = a.Options().(*metav1.CreateOptions) })}
	s := &server{t: t, backend: backend, handler: rest.New(registry.New(backend, cache, registry.Options{Plugins: registry.Plugins{Validators: validators}}), &catalog, rest.Options{})}

	s.post(leads, named("a")).is(201)
	if seen == nil || seen.FieldManager != "" || seen.FieldValidation != "" {
		t.Errorf("without options: %v", seen)
	}
	s.post(leads+"?fieldManager=me&fieldValidation=Strict", named("b")).is(201)
	if seen.FieldManager != "me" || seen.FieldValidation != "Strict" {
		t.Errorf("with options: %v", seen)
	}
}
