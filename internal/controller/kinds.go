package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
)

// Lookup returns the Definition of a served resource, or nil.
func (o *Objects) Lookup(group, plural string) *resource.Definition {
	return o.Catalog.Set().Lookup(group, plural)
}

// Prefix returns the key prefix of a resource. For an unserved one it returns a prefix that no key
// has.
func (o *Objects) Prefix(group, plural string) string {
	if d := o.Lookup(group, plural); d != nil {
		return d.StoragePrefix
	}
	return "\x00"
}

// Kind returns the Definition that serves a kind, or an UnknownError.
func (o *Objects) Kind(ctx context.Context, apiVersion, kind string) (*resource.Definition, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, &UnknownError{What: apiVersion + " " + kind}
	}
	d := findKind(o.Catalog.Set(), gv, kind)
	if d == nil {
		if err := o.Refresh(ctx); err != nil {
			return nil, err
		}
		d = findKind(o.Catalog.Set(), gv, kind)
	}
	if d == nil {
		if d, err = o.otherKind(ctx, gv, kind); err != nil {
			return nil, err
		}
	}
	if d == nil {
		return nil, &UnknownError{What: apiVersion + " " + kind}
	}
	return d, nil
}

// With calls do with the Definition of the object at a key, and again if that Definition is no
// longer in force. If no kind of the group has the key, it returns an UnknownError.
func (o *Objects) With(ctx context.Context, group, key string, do func(*resource.Definition) error) error {
	if IsOthers(key) {
		d, err := o.otherKey(ctx, key)
		if err != nil {
			return err
		}
		return do(d)
	}
	for attempt := 0; ; attempt++ {
		d := findKey(o.Catalog.Set(), group, key)
		if d == nil || attempt > 0 {
			if err := o.Refresh(ctx); err != nil {
				return err
			}
			d = findKey(o.Catalog.Set(), group, key)
		}
		if d == nil {
			return &UnknownError{What: key}
		}
		if err := do(d); !IsStale(err) || attempt == StaleRetries {
			return err
		}
	}
}

// findKind returns the Definition that serves a kind, or nil.
func findKind(set *resource.Set, gv schema.GroupVersion, kind string) *resource.Definition {
	group := set.Group(gv.Group)
	if group == nil {
		return nil
	}
	for _, d := range group.Definitions {
		if v := d.Version(gv.Version); d.Kind == kind && v != nil && v.Served {
			return d
		}
	}
	return nil
}

// findKey returns the Definition of a group that has the key, or nil.
func findKey(set *resource.Set, group, key string) *resource.Definition {
	first, second, _ := resource.SplitCustom(key)
	plurals := []string{first}
	if first == group {
		plurals = []string{second, first}
	}
	for _, plural := range plurals {
		if d := set.Lookup(group, plural); d != nil && strings.HasPrefix(key, d.StoragePrefix) {
			return d
		}
	}
	return nil
}

// An UnknownError means that a kind is not served, perhaps not yet. A task that returns it is
// retried when the served kinds change.
type UnknownError struct{ What string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s is of a kind that is not served", e.What)
}

// IsUnknown reports whether an error is an UnknownError.
func IsUnknown(err error) bool {
	var e *UnknownError
	return errors.As(err, &e)
}
