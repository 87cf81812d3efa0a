package envtest

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/kv"
)

// objectKeys is the prefix of the keys of all objects in the store.
const objectKeys = "/registry/"

// A Change is a change of one object in the store.
type Change struct {
	// Revision is the resourceVersion of the change.
	Revision int64
	// User and Verb are those of the request. They are empty if a controller of the server made the
	// change.
	User, Verb string
	// Before is nil for a new object, and After for a deleted one. Both have the storage version.
	Before, After *unstructured.Unstructured
}

// String describes the change: the kind and the name of the object, and its changed fields with their new
// values. Fields that every change has are left out.
func (c Change) String() string {
	of := c.After
	if of == nil {
		of = c.Before
	}
	name := of.GetKind() + " " + strings.TrimPrefix(of.GetNamespace()+"/"+of.GetName(), "/")
	switch {
	case c.After == nil:
		return name + " deleted"
	case c.Before == nil:
		return name + " created"
	}
	var fields []string
	differences(bare(c.Before.Object), bare(c.After.Object), "", &fields)
	return name + ": " + strings.Join(fields, " ")
}

// Observe calls f for each change of an object, before the response to the request that made it. f must
// not call the server. Calls are one after the other, and concurrent changes can come in another order
// than that of their revisions.
func (te *Environment) Observe(f func(Change)) (stop func()) {
	if te.server == nil {
		panic("envtest: Observe: " + errNotStarted.Error())
	}
	return te.server.observers.add(f)
}

// Objects returns the stored objects of all kinds, in their storage versions, at one revision. They are in
// the order of their keys: group, resource, namespace, name.
func (te *Environment) Objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if te.server == nil {
		return nil, errNotStarted
	}
	page, err := te.server.stored.List(ctx, kv.Range{Prefix: objectKeys})
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, r := range page.Records {
		if u := storedObject(r.Value, r.Revision); u != nil {
			all = append(all, u)
		}
	}
	return all, nil
}

// storedObject returns the object of a stored value, or nil if there is none.
func storedObject(value []byte, revision int64) *unstructured.Unstructured {
	var object map[string]any
	if value == nil || json.Unmarshal(value, &object) != nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: object}
	if u.GetKind() == "" {
		return nil
	}
	if revision > 0 {
		u.SetResourceVersion(strconv.FormatInt(revision, 10))
	}
	return u
}

// observers are the functions that observe the changes of a server.
type observers struct {
	mu  sync.Mutex
	all []*func(Change)
}

func (o *observers) add(f func(Change)) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, &f)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all = slices.DeleteFunc(o.all, func(g *func(Change)) bool { return g == &f })
	}
}

func (o *observers) none() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all) == 0
}

// committed reports the changes of a write with the values before it.
func (o *observers) committed(ctx context.Context, w *kv.Write, before map[string]kv.Record, revision int64) {
	var c Change
	if q := request.From(ctx); q != nil {
		c.Verb = q.Info.Verb
		if q.User != nil {
			c.User = q.User.Name
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for one := range w.All() {
		was := before[one.Key]
		c.Revision, c.Before, c.After = revision, storedObject(was.Value, was.Revision), storedObject(one.Value, revision)
		if c.Before == nil && c.After == nil {
			continue
		}
		for _, f := range o.all {
			(*f)(c)
		}
	}
}
