package watchcache

import (
	"fmt"
	"testing"
)

// values are objects of 1,000 bytes in memory, with contentSize.
type values struct {
	hot
	objects []*Object
}

func newValues(objects, budget int) *values {
	v := &values{hot: hot{budget: int64(budget) * 1000}}
	for i := range objects {
		v.objects = append(v.objects, &Object{Key: fmt.Sprint(i), bytes: 1000 - contentSize})
	}
	return v
}

// read reads an object. If its value is not in memory, it is loaded.
func (v *values) read(i int) (hit bool) {
	o := v.objects[i]
	if c := o.content.Load(); c != nil {
		c.used.Store(true)
		return true
	}
	c := &content{}
	o.content.Store(c)
	v.admit(o, c)
	return false
}

func (v *values) check(t *testing.T) {
	t.Helper()
	kept, charged := 0, int64(0)
	for _, o := range v.objects {
		if c := o.content.Load(); c != nil {
			kept++
			charged += c.charged
		}
	}
	if charged != v.bytes || v.bytes > v.budget || kept != v.probation.len()+v.proven.len() {
		t.Errorf("%d values of %d bytes are in memory, %d bytes charged, %d values known", kept, charged, v.bytes, v.probation.len()+v.proven.len())
	}
}

// Within the budget, nothing is evicted, and values that are read again outlive a read of everything.
func TestHotValuesOutliveAScan(t *testing.T) {
	v := newValues(10_000, 100)
	for range 3 {
		for i := range 80 {
			v.read(i)
		}
	}
	for i := 1000; i < 1100; i++ { // ends the probation of the first 80
		v.read(i)
	}
	v.check(t)
	for i := 100; i < 10_000; i++ {
		v.read(i)
	}
	v.check(t)
	hits := 0
	for i := range 80 {
		if v.read(i) {
			hits++
		}
	}
	if hits < 70 {
		t.Errorf("%d of 80 hot values are in memory after a scan", hits)
	}
}

// A set that fits into the budget gets hot, although other values fill the budget.
func TestValuesGetHot(t *testing.T) {
	v := newValues(1000, 100)
	for range 3 {
		for i := 500; i < 600; i++ {
			v.read(i)
		}
	}
	hits := 0
	for round := range 20 {
		for i := range 60 {
			if v.read(i) && round == 19 {
				hits++
			}
		}
	}
	v.check(t)
	if hits < 50 {
		t.Errorf("%d of 60 values are hot", hits)
	}
}

// Results that are kept with a value count, and leave with it. A pinned value does not count once its turn came.
func TestDerivedBytesAreCharged(t *testing.T) {
	v := newValues(100, 10)
	for i := range 5 {
		v.read(i)
	}
	v.grow(v.objects[4].content.Load(), 6000)
	v.check(t)
	if v.objects[0].content.Load() != nil {
		t.Error("there is room for a value more than the budget has")
	}
	v.objects[4].pinned.Store(true)
	for i := 10; i < 30; i++ {
		v.read(i)
	}
	if c := v.objects[4].content.Load(); c == nil || c.charged != 0 || v.bytes > v.budget {
		t.Errorf("a pinned value is %+v, with %d bytes in memory", c, v.bytes)
	}
	v.forget(func(*Object) bool { return true })
	if v.bytes != 0 || v.probing != 0 || v.probation.len()+v.proven.len() != 0 {
		t.Errorf("%d bytes are left", v.bytes)
	}
}

func TestUID(t *testing.T) {
	for text, want := range map[string]bool{
		"0f8fad5b-d9cb-469f-a165-70867728950e": true, "00000000-0000-0000-0000-000000000000": true,
		"0F8fad5b-d9cb-469f-a165-70867728950e": false, "0f8fad5bd-9cb-469f-a165-70867728950e": false, "x": false, "": false,
	} {
		var id [16]byte
		if got := parseUID(text, &id); got != want || got && formatUID(&id) != text {
			t.Errorf("%q: %v, %q", text, got, formatUID(&id))
		}
		o := NewObject("/registry/a/n/b", fmt.Appendf(nil, `{"metadata":{"name":"b","namespace":"n","uid":%q}}`, text), 1)
		if o.UID() != text || o.Name() != "b" || o.Namespace() != "n" {
			t.Errorf("the header is %q, %q, %q", o.UID(), o.Name(), o.Namespace())
		}
		if appended := string(o.AppendUID([]byte("x"))); appended != "x"+text {
			t.Errorf("appended %q, want %q", appended, "x"+text)
		}
	}
	// A header that does not follow from the key.
	o := NewObject("/registry/a/n/b", []byte(`{"metadata":{"name":"c","namespace":"m","uid":"x"}}`), 1)
	if o.UID() != "x" || o.Name() != "c" || o.Namespace() != "m" {
		t.Errorf("the header is %q, %q, %q", o.UID(), o.Name(), o.Namespace())
	}
}
