// Package events implements the admission plugin EventRateLimit, which limits the rate at which
// clients write events.
package events

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// RateLimit rejects an event that exceeds one of the limits.
type RateLimit struct{ limits []*limit }

// A Type selects the key of a limit's buckets.
type Type string

// The types of limits.
const (
	Server          Type = "Server"
	Namespace       Type = "Namespace"
	User            Type = "User"
	SourceAndObject Type = "SourceAndObject"
)

type config struct {
	Limits []limitConfig `json:"limits"`
}

type limitConfig struct {
	Type      Type  `json:"type"`
	QPS       int32 `json:"qps"`
	Burst     int32 `json:"burst"`
	CacheSize int32 `json:"cacheSize,omitempty"`
}

// cacheSize is the default number of buckets that a limit remembers.
const cacheSize = 4096

// New returns a RateLimit with the limits of a configuration.
func New(text []byte) (*RateLimit, error) {
	c, err := admission.Decode[config](text, schema.GroupVersionKind{Group: "eventratelimit.admission.k8s.io", Version: "v1alpha1", Kind: "Configuration"})
	if err != nil {
		return nil, err
	}
	if errs := c.validate(); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	r := &RateLimit{}
	for _, l := range c.Limits {
		size := int(l.CacheSize)
		if size == 0 {
			size = cacheSize
		}
		r.limits = append(r.limits, &limit{limitConfig: l, buckets: lru.New(size)})
	}
	return r, nil
}

func (c *config) validate() (errs field.ErrorList) {
	at := field.NewPath("limits")
	if len(c.Limits) == 0 {
		errs = append(errs, field.Invalid(at, c.Limits, "must not be empty"))
	}
	for i, l := range c.Limits {
		at := at.Index(i)
		switch l.Type {
		case Server, Namespace, User, SourceAndObject:
		default:
			errs = append(errs, field.NotSupported(at.Child("type"), l.Type, []Type{Namespace, Server, SourceAndObject, User}))
		}
		if l.Burst <= 0 {
			errs = append(errs, field.Invalid(at.Child("burst"), l.Burst, "must be positive"))
		}
		if l.QPS <= 0 {
			errs = append(errs, field.Invalid(at.Child("qps"), l.QPS, "must be positive"))
		}
		if l.Type != Server && l.CacheSize < 0 {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must not be negative"))
		}
	}
	return errs
}

// Validate implements registry.Validator. As in Kubernetes, events of the group events.k8s.io are
// not limited.
func (r *RateLimit) Validate(_ context.Context, a *registry.Admission) error {
	d, _ := a.Target.Shown()
	if d.Kind != "Event" || d.Group != corev1.GroupName || a.Operation != registry.Create && a.Operation != registry.Update || a.DryRun() {
		return nil
	}
	var reached []error
	for _, l := range r.limits {
		if key := l.key(a); !l.take(key) {
			reached = append(reached, fmt.Errorf("limit reached on type %v for key %v", l.Type, key))
		}
	}
	if err := utilerrors.NewAggregate(reached); err != nil {
		return status.Limited(err.Error())
	}
	return nil
}

// A limit has a token bucket for each key.
type limit struct {
	limitConfig

	mu      sync.Mutex
	buckets *lru.Cache
}

// A bucket is a token bucket: it refills continuously, and an event takes one token.
type bucket struct {
	has float64
	at  time.Time
}

// take reports whether the bucket of the key has a token, and takes it.
func (l *limit) take(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	found, ok := l.buckets.Get(key)
	if !ok {
		found = &bucket{has: float64(l.Burst), at: now}
		l.buckets.Add(key, found)
	}
	b := found.(*bucket)
	b.has = min(b.has+now.Sub(b.at).Seconds()*float64(l.QPS), float64(l.Burst))
	b.at = now
	if b.has < 1 {
		return false
	}
	b.has--
	return true
}

// key returns the bucket key of an event.
func (l *limit) key(a *registry.Admission) string {
	switch l.Type {
	case Namespace:
		return a.Target.Namespace
	case User:
		if a.User != nil {
			return a.User.Name
		}
	case SourceAndObject:
		return sourceAndObject(a.Object)
	}
	return ""
}

func sourceAndObject(event object.Tree) string {
	var key strings.Builder
	for _, path := range [][2]string{
		{"source", "component"}, {"source", "host"}, {"involvedObject", "kind"}, {"involvedObject", "namespace"},
		{"involvedObject", "name"}, {"involvedObject", "uid"}, {"involvedObject", "apiVersion"},
	} {
		key.WriteString(kind.Text(event, path[:]...))
	}
	return key.String()
}
