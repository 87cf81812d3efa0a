package gotype

import (
	"reflect"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/schematest"
)

// Values that are not stored stay until DropUnstored. Then the object equals the result of
// Coerce, except that an always encoded empty list is null.
func TestReadAndDropUnstored(t *testing.T) {
	typ := Of(reflect.TypeFor[everything]())
	const always = `inner: {}, listAlways: null, metadata: {}, quantity: "0", text: "", time: null`
	for _, c := range []struct{ sent, read, stored string }{
		{`{}`, `{}`, `{}`},
		{`{list: [a], map: {a: b}}`, `{list: [a], map: {a: b}}`, `{list: [a], map: {a: b}}`},
		{`{list: [], map: {}, data: {}, bytes: ""}`, `{list: [], map: {}, data: {}, bytes: ""}`, `{}`},
		{`{list: null, map: null}`, `{}`, `{}`},
		{`{listAlways: []}`, `{listAlways: []}`, `{}`},
		{`{textOmit: "", flag: false}`, `{}`, `{}`},
		{`{metadata: {labels: {}, finalizers: []}}`, `{}`, `{}`},
		{`{timeZero: "2026-01-02T03:04:05.5Z"}`, `{timeZero: "2026-01-02T03:04:05.5Z"}`, `{timeZero: "2026-01-02T03:04:05Z"}`},
		{`{time: "2026-01-02T03:04:05.25+01:00"}`, `{time: "2026-01-02T02:04:05.25Z"}`, `{time: "2026-01-02T02:04:05Z"}`},
		{`{time: "2026-01-02T03:04:05.0Z"}`, `{time: "2026-01-02T03:04:05Z"}`, `{time: "2026-01-02T03:04:05Z"}`},
		{`{inners: [{a: x}, {a: ""}]}`, `{inners: [{a: x}, {}]}`, `{inners: [{a: x}, {}]}`},
		{
			`{self: {inner: {}, metadata: {}, quantity: "0", text: "", time: null, listAlways: [x], list: []}}`,
			`{self: {inner: {}, metadata: {}, quantity: "0", text: "", time: null, listAlways: [x], list: []}}`,
			`{self: {inner: {}, metadata: {}, quantity: "0", text: "", time: null, listAlways: [x]}}`,
		},
		{`{any: {list: []}}`, `{any: {list: []}}`, `{any: {list: []}}`},
	} {
		whole := func(s string) object.Tree {
			all := schematest.Tree(t, `{`+always+`}`)
			for k, v := range schematest.Tree(t, s) {
				all[k] = v
			}
			return all
		}
		read, err := typ.Read(schematest.Tree(t, c.sent))
		if err != nil {
			t.Errorf("%s: %v", c.sent, err)
			continue
		}
		schematest.Equal(t, c.sent+" as read", any(read), any(whole(c.read)))
		before := object.CloneTree(read)
		stored, dropped := typ.DropUnstored(read)
		schematest.Equal(t, c.sent+" as stored", any(stored), any(whole(c.stored)))
		if dropped == object.Equal(stored, read) {
			t.Errorf("%s: dropped is %v", c.sent, dropped)
		}
		if !object.Equal(read, before) {
			t.Errorf("%s: DropUnstored has changed its argument", c.sent)
		}
	}
}

// For the count of changes, an empty list equals none, and a fraction of a second is a difference.
func TestDropEmpty(t *testing.T) {
	typ := Of(reflect.TypeFor[everything]())
	const all = `{list: [], listAlways: [], bytes: "", self: {bytes: ""}, time: "2026-01-02T03:04:05.5Z", inners: [{}]}`
	got := typ.DropEmpty(schematest.Tree(t, all))
	schematest.Equal(t, "what is left", any(got), any(schematest.Tree(t, `{listAlways: null, self: {}, time: "2026-01-02T03:04:05.5Z", inners: [{}]}`)))
	got = typ.DropUnwritten(schematest.Tree(t, all))
	schematest.Equal(t, "what is left with what is written", any(got), any(schematest.Tree(t, `{listAlways: [], self: {}, time: "2026-01-02T03:04:05Z", inners: [{}]}`)))
	got = typ.DropEmptyBytes(schematest.Tree(t, all))
	schematest.Equal(t, "what is left without bytes", any(got), any(schematest.Tree(t, `{list: [], listAlways: [], self: {}, time: "2026-01-02T03:04:05.5Z", inners: [{}]}`)))
}

func BenchmarkSettle(b *testing.B) {
	typ := Of(reflect.TypeFor[everything]())
	obj := schematest.Tree(b, `{list: [a, b], map: {a: b, c: d}, inners: [{a: x}, {a: y}], self: {list: [a], time: "2026-01-02T03:04:05Z"}}`)
	b.ReportAllocs()
	for b.Loop() {
		typ.DropUnstored(obj)
	}
}
