package crd

import (
	"bytes"
	"strings"
	"sync/atomic"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// An entry is the Registrar's record of one CustomResourceDefinition, enough to serve it and to decide
// the names of others. It is immutable. For an undecodable definition it has only a name and a
// revision.
type entry struct {
	name     string
	uid      types.UID
	revision int64
	group    string
	accepted names

	decided  bool // names were decided
	named    bool // all requested names are accepted
	deleting bool

	source     *source
	guard      *guard
	definition *resource.Definition // nil if not served
}

// unread reports whether the stored definition could not be decoded.
func (e *entry) unread() bool { return e.uid == "" }

// A guard holds the last revision at which the stored CustomResourceDefinition matched a Definition.
// When another Definition replaces this one, the revision stays, so that writes checked against the
// old one fail.
type guard struct {
	key      string
	revision atomic.Int64
}

func newGuard(o *watchcache.Object) *guard {
	g := &guard{key: o.Key}
	g.revision.Store(o.Revision)
	return g
}

func (g *guard) get() (string, int64) { return g.key, g.revision.Load() }

// A change replaces an entry by another. Either may be nil.
type change struct{ old, now *entry }

// definition reports whether the change affects a served definition.
func (c change) definition() bool {
	var was, is *resource.Definition
	if c.old != nil {
		was = c.old.definition
	}
	if c.now != nil {
		is = c.now.definition
	}
	return was != is
}

// freed reports whether the change frees names.
func (c change) freed() bool {
	return c.old != nil && (c.now == nil || !sameNames(&c.old.accepted, &c.now.accepted))
}

// index holds the entries by name and by group. Its zero value is empty.
type index struct {
	all    map[string]*entry
	groups map[string]map[string]*entry
}

func (x *index) get(name string) *entry { return x.all[name] }

func (x *index) names() map[string]bool {
	out := make(map[string]bool, len(x.all))
	for name := range x.all {
		out[name] = true
	}
	return out
}

func (x *index) put(c change) {
	if x.all == nil {
		x.all, x.groups = map[string]*entry{}, map[string]map[string]*entry{}
	}
	if e := c.old; e != nil {
		delete(x.all, e.name)
		delete(x.groups[e.group], e.name)
		if len(x.groups[e.group]) == 0 {
			delete(x.groups, e.group)
		}
	}
	if e := c.now; e != nil {
		x.all[e.name] = e
		if x.groups[e.group] == nil {
			x.groups[e.group] = map[string]*entry{}
		}
		x.groups[e.group][e.name] = e
	}
}

func nameOf(key string) string { return strings.TrimPrefix(key, Prefix) }

// read creates the entry of a stored object. A definition that cannot be decoded or compiled is logged
// and not served; others are not affected.
func (r *Registrar) read(o *watchcache.Object, old *entry) *entry {
	e := &entry{name: nameOf(o.Key), revision: o.Revision}
	err, data := o.Err, o.JSON
	var crd *v1.CustomResourceDefinition
	if err == nil {
		crd, err = decode(data)
	}
	if err == nil {
		err = e.fill(o, data, crd, old, r)
	}
	if err != nil {
		r.o.Logger.Error("a stored CustomResourceDefinition is not served", "name", e.name, "err", err)
	}
	return e
}

// fill completes e from crd, whose JSON is data. It reuses the Definition of old if there is no
// visible change.
func (e *entry) fill(o *watchcache.Object, data []byte, crd *v1.CustomResourceDefinition, old *entry, r *Registrar) error {
	e.uid = crd.UID
	e.group = crd.Spec.Group
	e.accepted = crd.Status.AcceptedNames
	e.decided = conditions.Find(&crd.Status, v1.NamesAccepted) != nil
	e.named = conditions.IsTrue(&crd.Status, v1.NamesAccepted)
	e.deleting = crd.DeletionTimestamp != nil
	if !conditions.IsTrue(&crd.Status, v1.Established) {
		return nil
	}
	if old != nil && old.definition != nil && old.uid == e.uid && sameNames(&old.accepted, &e.accepted) && old.source.sameSpec(data) {
		e.source = old.source
		e.source.data.Store(&data)
		if old.deleting == e.deleting {
			e.definition, e.guard = old.definition, old.guard
			e.guard.revision.Store(o.Revision)
			return nil
		}
		e.guard = newGuard(o)
		e.definition = old.definition.Continue(func(d *resource.Definition) {
			d.Terminating, d.Guard = e.deleting, e.guard.get
		})
		return nil
	}
	e.source, e.guard = newSource(data), newGuard(o)
	d, err := r.compiler.Compile(crd, e.source.schema)
	if err != nil {
		return err
	}
	for _, v := range d.Versions {
		v.Served = v.Served && !r.servesBuiltIn(d.Group, v.Name)
	}
	d.CompleteSince, d.Guard = o.Revision, e.guard.get
	d.CheckOnRead = r.o.Shared || len(d.Versions) > 1 && bytes.Contains(data, []byte(`"default":`))
	e.definition = resource.New(*d)
	return nil
}
