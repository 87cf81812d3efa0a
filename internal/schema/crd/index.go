package crd

import (
	"bytes"
	"iter"
	"strings"

	"github.com/tidwall/btree"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/conversion"
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
	rules    string // of its conversion; "" for none

	decided  bool // names were decided
	named    bool // all requested names are accepted
	deleting bool

	source     *source
	definition *resource.Definition // nil if not served
}

// unread reports whether the stored definition could not be decoded.
func (e *entry) unread() bool { return e.uid == "" }

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

// index holds the entries by name and by group. Its zero value is empty. A copy costs nothing.
type index struct {
	all    btree.Map[string, *entry]
	groups btree.Map[string, *entry] // by group, a space and the name
}

func (x *index) get(name string) *entry {
	e, _ := x.all.Get(name)
	return e
}

// copy returns an independent copy.
func (x *index) copy() index { return index{*x.all.Copy(), *x.groups.Copy()} }

// of yields the entries of a group.
func (x *index) of(group string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		x.groups.Ascend(group+" ", func(key string, e *entry) bool {
			return strings.HasPrefix(key, group+" ") && yield(e)
		})
	}
}

func (x *index) put(c change) {
	if e := c.old; e != nil {
		x.all.Delete(e.name)
		x.groups.Delete(e.group + " " + e.name)
	}
	if e := c.now; e != nil {
		x.all.Set(e.name, e)
		x.groups.Set(e.group+" "+e.name, e)
	}
}

func nameOf(key string) string { return strings.TrimPrefix(key, Prefix) }

// read creates the entry of a stored object. A definition that cannot be decoded or compiled is logged
// and not served; others are not affected.
func (r *Registrar) read(o *watchcache.Object, old *entry) *entry {
	e := &entry{name: nameOf(o.Key), revision: o.Revision}
	data, err := o.JSON()
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
	e.rules = crd.Annotations[conversion.Annotation]
	e.accepted = crd.Status.AcceptedNames
	e.decided = conditions.Find(&crd.Status, v1.NamesAccepted) != nil
	e.named = conditions.IsTrue(&crd.Status, v1.NamesAccepted)
	e.deleting = crd.DeletionTimestamp != nil
	if !conditions.IsTrue(&crd.Status, v1.Established) {
		return nil
	}
	if old != nil && old.definition != nil && old.uid == e.uid && sameNames(&old.accepted, &e.accepted) && old.rules == e.rules && old.source.sameSpec(data) {
		e.source = old.source
		e.source.data.Store(&data)
		if e.definition = old.definition; old.deleting != e.deleting {
			e.definition = old.definition.Continue(func(d *resource.Definition) { d.Terminating = e.deleting })
		}
		return nil
	}
	e.source = newSource(data)
	d, err := r.compiler.Compile(crd, e.source.schema)
	if err != nil {
		return err
	}
	for _, v := range d.Versions {
		v.Served = v.Served && !r.servesBuiltIn(d.Group, v.Name)
	}
	d.CompleteSince = o.Revision
	d.CheckOnRead = r.o.Shared || len(d.Versions) > 1 && bytes.Contains(data, []byte(`"default":`))
	e.definition = resource.New(*d)
	return nil
}
