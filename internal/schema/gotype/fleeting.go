package gotype

import (
	"maps"
	"slices"
	"time"
)

// A value of a Go type may hold more than its JSON: empty lists and maps, and fractions of a second.
// Kubernetes processes such values until it stores the object; no later read shows them.

// Read is Coerce, but keeps values that the type does not encode, except in metadata.
func (t *Type) Read(obj map[string]any) (map[string]any, error) {
	if t.fieldsFit(obj) != foreign {
		return t.Coerce(obj)
	}
	out, err := t.through(obj)
	if err != nil {
		return nil, err
	}
	rest := maps.Clone(obj)
	delete(rest, "metadata")
	t.restore(out, rest)
	return out, nil
}

// restore adds to out the values of read that the type does not encode.
func (t *Type) restore(out, read any) {
	switch read := read.(type) {
	case map[string]any:
		out, _ := out.(map[string]any)
		if out == nil {
			return
		}
		for k, v := range read {
			of := t.inside(k)
			switch written, ok := out[k]; {
			case of.Type == nil || v == nil:
			case t.form == formStruct && of.fleets(v):
				out[k] = v
			case !ok:
			case of.form == formTime:
				out[k] = withParts(written, v)
			default:
				of.restore(written, v)
			}
		}
	case []any:
		out, _ := out.([]any)
		for i := range min(len(out), len(read)) {
			if t.form == formList {
				t.elem.restore(out[i], read[i])
			}
		}
	}
}

// inside returns the field or the element of a name.
func (t *Type) inside(name string) typeField {
	switch t.form {
	case formStruct:
		return t.fields[name]
	case formMap:
		return typeField{Type: t.elem}
	default:
		return typeField{}
	}
}

// fleets reports whether v is a list or map that is there and empty, or no bytes, which
// the field does not write.
func (f typeField) fleets(v any) bool {
	switch f.form {
	case formList, formMap, formBytes:
		return v != nil && f.omitEmpty && !f.pointer && f.empty(v)
	default:
		return false
	}
}

// withParts returns a written time with the fraction of a second of the read one.
func withParts(written, read any) any {
	s, _ := read.(string)
	at, err := time.Parse(time.RFC3339, s)
	if err != nil || written == nil || at.Nanosecond() == 0 {
		return written
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// DropUnstored returns an object of the type as Kubernetes reads it from protobuf: without empty lists and
// maps, and without fractions of a second. It reports whether there was anything to drop. It does not
// change obj. It skips metadata, in which empty managedFields have a meaning.
func (t *Type) DropUnstored(obj map[string]any) (out map[string]any, dropped bool) {
	return t.dropped(obj, dropper{seconds: true, lists: true, nulls: true})
}

// DropUnwritten is DropUnstored, but keeps empty lists and maps that encoding/json writes: consumers of the
// type's JSON before storage see them.
func (t *Type) DropUnwritten(obj map[string]any) map[string]any {
	out, _ := t.dropped(obj, dropper{seconds: true, lists: true})
	return out
}

func (t *Type) dropped(obj map[string]any, s dropper) (out map[string]any, dropped bool) {
	out, dropped = s.fields(t, obj)
	if metadata, ok := obj["metadata"]; ok && dropped {
		out["metadata"] = metadata
	}
	return out, dropped
}

// DropEmpty is the part of DropUnstored for lists, maps and bytes.
func (t *Type) DropEmpty(obj map[string]any) map[string]any {
	out, _ := dropper{lists: true, nulls: true}.fields(t, obj)
	return out
}

// DropEmptyBytes is the part of DropUnstored for bytes.
func (t *Type) DropEmptyBytes(obj map[string]any) map[string]any {
	out, _ := dropper{}.fields(t, obj)
	return out
}

// A dropper brings values into their stored form, and reports whether they differed. It drops empty
// bytes. With seconds it also drops fractions of a second, with lists empty lists and maps. With
// nulls, empty values that are always encoded become null.
type dropper struct{ seconds, lists, nulls bool }

func (s dropper) drop(t *Type, v any) (kept any, changed bool) {
	switch inner := v.(type) {
	case map[string]any:
		switch t.form {
		case formStruct:
			return s.fields(t, inner)
		case formMap:
			return s.values(t.elem, inner)
		}
	case []any:
		if t.form == formList {
			if items, changed := s.items(t.elem, inner); changed {
				return items, true
			}
		}
	case string:
		if t.form == formTime && s.seconds && hasParts(inner) {
			return wholeSeconds(inner), true
		}
	}
	return v, false
}

func (s dropper) fields(t *Type, obj map[string]any) (out map[string]any, changed bool) {
	out = obj
	for k, v := range obj {
		f := t.fields[k]
		if f.Type == nil || v == nil {
			continue
		}
		kept, differs, drop := v, false, f.fleets(v) && (s.lists || f.form == formBytes)
		switch {
		case drop:
		case s.nulls && !f.pointer && isNothing(f.form, v):
			kept, differs = nil, true
		default:
			kept, differs = s.drop(f.Type, v)
		}
		if !differs && !drop {
			continue
		}
		if !changed {
			out, changed = maps.Clone(obj), true
		}
		if out[k] = kept; drop {
			delete(out, k)
		}
	}
	return out, changed
}

// isNothing reports whether v is an empty list or map. An always encoded one is null once it is
// stored.
func isNothing(f form, v any) bool {
	switch v := v.(type) {
	case []any:
		return f == formList && len(v) == 0
	case map[string]any:
		return f == formMap && len(v) == 0
	default:
		return false
	}
}

func (s dropper) values(elem *Type, obj map[string]any) (out map[string]any, changed bool) {
	out = obj
	for k, v := range obj {
		kept, differs := s.drop(elem, v)
		switch {
		case !differs:
			continue
		case !changed:
			out, changed = maps.Clone(obj), true
		}
		out[k] = kept
	}
	return out, changed
}

func (s dropper) items(elem *Type, list []any) (out []any, changed bool) {
	out = list
	for i, v := range list {
		kept, differs := s.drop(elem, v)
		switch {
		case !differs:
			continue
		case !changed:
			out, changed = slices.Clone(list), true
		}
		out[i] = kept
	}
	return out, changed
}

// wholeSecond is the length of a time without a fraction of a second.
const wholeSecond = len("2006-01-02T15:04:05")

// hasParts reports whether a time in UTC has parts of a second.
func hasParts(s string) bool { return len(s) > wholeSecond && s[wholeSecond] == '.' }

func wholeSeconds(s string) string { return s[:wholeSecond] + "Z" }
