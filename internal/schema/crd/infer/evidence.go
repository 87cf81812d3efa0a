package infer

import (
	"strconv"

	"github.com/anykind/anykind/internal/object"
)

// Limits of the evidence of a place.
const (
	mostValues = 24  // different strings
	mostFields = 200 // fields of an object; with more, it is a map
)

// A place has the evidence of one place in all samples. Places can be merged.
type place struct {
	seen    int // values, null included
	samples int // that have the place
	last    int // the last of them

	nulls, booleans, integers, numbers int

	text   text
	list   list
	object fields
}

// A list has the evidence of lists in a place.
type list struct {
	seen    int
	several int // with two items or more
	samples int // that have one of these
	last    int
	items   *place // nil if no list has one
	// repeats is true if a list had an item twice. For items that are objects, repeated has the fields
	// with equal values in two items of a list.
	repeats  bool
	repeated map[string]bool
}

// fields has the evidence of objects in a place.
type fields struct {
	seen   int
	most   int // fields that one object had
	byName map[string]*place
	// values is the merged evidence of all fields, once there are too many of them.
	values *place
}

// add adds a value of a numbered sample.
func (p *place) add(v any, sample int) {
	p.seen++
	if p.last != sample {
		p.last = sample
		p.samples++
	}
	switch v := v.(type) {
	case nil:
		p.nulls++
	case bool:
		p.booleans++
	case int64:
		p.integers++
	case float64:
		p.numbers++
	case string:
		p.text.add(v)
	case []any:
		p.list.add(v, sample)
	case object.Tree:
		p.object.add(v, sample)
	}
}

func (l *list) add(v []any, sample int) {
	l.seen++
	if len(v) > 1 {
		l.several++
		if l.last != sample {
			l.last = sample
			l.samples++
		}
	}
	scalars := map[string]bool{}
	byField := map[string]map[string]bool{}
	for _, item := range v {
		l.ensure().add(item, sample)
		if s, ok := scalar(item); ok {
			l.repeats = l.repeats || scalars[s]
			scalars[s] = true
		}
		t, _ := item.(object.Tree)
		for name, value := range t {
			s, ok := scalar(value)
			if !ok {
				continue
			}
			if byField[name] == nil {
				byField[name] = map[string]bool{}
			}
			if byField[name][s] {
				if l.repeated == nil {
					l.repeated = map[string]bool{}
				}
				l.repeated[name] = true
			}
			byField[name][s] = true
		}
	}
}

// each returns the evidence of items.
func (l *list) each() *place {
	if l.items == nil {
		return &place{}
	}
	return l.items
}

// ensure is each, created if missing.
func (l *list) ensure() *place {
	if l.items == nil {
		l.items = &place{}
	}
	return l.items
}

// scalar is a value that can be the key of an item.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return "s" + v, true
	case int64:
		return "i" + strconv.FormatInt(v, 10), true
	}
	return "", false
}

func (f *fields) add(t object.Tree, sample int) {
	f.seen++
	f.most = max(f.most, len(t))
	for name, v := range t {
		f.at(name).add(v, sample)
	}
}

// at is the place of a field.
func (f *fields) at(name string) *place {
	if f.values != nil {
		return f.values
	}
	if p := f.byName[name]; p != nil {
		return p
	}
	if len(f.byName) == mostFields {
		f.values = f.together()
		f.byName = nil
		return f.values
	}
	if f.byName == nil {
		f.byName = map[string]*place{}
	}
	p := &place{}
	f.byName[name] = p
	return p
}

// together returns the merged evidence of all fields.
func (f *fields) together() *place {
	if f.values != nil {
		return f.values
	}
	all := &place{}
	for _, p := range f.byName {
		all.merge(p)
	}
	return all
}

// merge adds the evidence of another place.
func (p *place) merge(o *place) {
	p.seen += o.seen
	p.samples = max(p.samples, o.samples) // at least: the two sets of samples may overlap
	p.nulls += o.nulls
	p.booleans += o.booleans
	p.integers += o.integers
	p.numbers += o.numbers
	p.text.merge(&o.text)
	p.list.merge(&o.list)
	p.object.merge(&o.object)
}

func (l *list) merge(o *list) {
	l.seen += o.seen
	l.several += o.several
	l.samples = max(l.samples, o.samples)
	if o.items != nil {
		l.ensure().merge(o.items)
	}
	l.repeats = l.repeats || o.repeats
	for name := range o.repeated {
		if l.repeated == nil {
			l.repeated = map[string]bool{}
		}
		l.repeated[name] = true
	}
}

func (f *fields) merge(o *fields) {
	f.seen += o.seen
	f.most = max(f.most, o.most)
	if o.seen == 0 {
		return
	}
	if o.values != nil && f.values == nil {
		f.values = f.together()
		f.byName = nil
	}
	if o.values != nil {
		f.values.merge(o.values)
		return
	}
	for name, p := range o.byName {
		f.at(name).merge(p)
	}
}

// A kind is one of the types of JSON, as in schemas.
type kind string

// The kinds of values.
const (
	ofBoolean kind = "boolean"
	ofInteger kind = "integer"
	ofNumber  kind = "number"
	ofString  kind = "string"
	ofArray   kind = "array"
	ofObject  kind = "object"
)

// kinds returns the types of the values, except null. Integers count as numbers if there are other
// numbers.
func (p *place) kinds() (all []kind) {
	for _, k := range []struct {
		kind kind
		n    int
	}{
		{ofBoolean, p.booleans}, {ofInteger, p.integers}, {ofNumber, p.numbers}, {ofString, p.text.seen},
		{ofArray, p.list.seen}, {ofObject, p.object.seen},
	} {
		if k.n > 0 && (k.kind != ofInteger || p.numbers == 0) {
			all = append(all, k.kind)
		}
	}
	return all
}

// is reports whether all values are of a kind, or null.
func (p *place) is(k kind) bool {
	all := p.kinds()
	return len(all) == 1 && all[0] == k
}
