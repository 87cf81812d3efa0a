package builtin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A Mutation is one change of an object.
type Mutation struct {
	Path   []any // field names and indexes
	Value  any   // the new value; removed{} removes the old one
	Stored bool  // the stored object already has it
}

type removed struct{}

func (m Mutation) String() string {
	if m.Stored {
		m.Stored = false
		return "stored with " + m.String()
	}
	if m.Value == (removed{}) {
		return "remove " + showPath(m.Path)
	}
	data, err := json.Marshal(m.Value)
	if err != nil {
		return err.Error()
	}
	return showPath(m.Path) + " = " + shorten(string(data), 400)
}

func showPath(path []any) string {
	var b strings.Builder
	for _, p := range path {
		switch p := p.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", p)
		case string:
			if strings.ContainsAny(p, "./[") || p == "" {
				b.WriteString("[" + strconv.Quote(p) + "]")
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		}
	}
	return b.String()
}

// parent returns the path of the mutated struct, without indexes.
func (m Mutation) parent() string { return blank(showPath(m.Path[:len(m.Path)-1])) }

// Apply returns a changed copy, or nil if the path does not exist in o.
func (m Mutation) Apply(o Object) Object {
	out, ok := set(o, m.Path, m.Value).(Object)
	if !ok {
		return nil
	}
	return out
}

func set(v any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch key := path[0].(type) {
	case string:
		o, ok := v.(Object)
		if !ok {
			return nil
		}
		out := make(Object, len(o)+1)
		for k, x := range o {
			out[k] = x
		}
		if len(path) == 1 && value == (removed{}) {
			delete(out, key)
			return out
		}
		if out[key] = set(o[key], path[1:], value); out[key] == nil && len(path) > 1 {
			return nil
		}
		return out
	case int:
		l, ok := v.([]any)
		if !ok || key > len(l) || key == len(l) && value == (removed{}) {
			return nil
		}
		out := slices.Clone(l)
		switch {
		case len(path) == 1 && value == (removed{}):
			return slices.Delete(out, key, key+1)
		case key == len(l):
			return append(out, value)
		}
		if out[key] = set(l[key], path[1:], value); out[key] == nil && len(path) > 1 {
			return nil
		}
		return out
	}
	return nil
}

// external returns an empty object of the Go type of a kind's version.
func (k *Kind) external() any {
	o, err := k.scheme.New(k.gvk())
	if err != nil {
		panic(err)
	}
	return o
}

// Mutations returns the single changes of an object of a kind, in a fixed order. depth limits the
// depth of new values.
func (k *Kind) Mutations(o Object, depth int) []Mutation {
	w := &walker{depth: depth}
	t := reflect.TypeOf(k.external()).Elem()
	for _, f := range fieldsOf(t) {
		switch f.name {
		case "apiVersion", "kind":
		case "metadata":
			w.metadata(o)
		default:
			w.field([]any{f.name}, f, o)
		}
	}
	return w.out
}

type walker struct {
	out   []Mutation
	depth int
}

func (w *walker) add(path []any, value any) {
	w.out = append(w.out, Mutation{Path: slices.Clone(path), Value: value})
}

// field mutates one field of a struct, present or absent.
func (w *walker) field(path []any, f structField, in Object) {
	v, there := in[f.name]
	if there {
		w.add(path, removed{})
		w.add(path, nil)
	}
	if !there || !isNested(f.of) {
		for _, c := range candidates(f, w.depth) {
			w.add(path, c)
		}
	}
	if there {
		w.value(path, f, v)
	}
}

// isNested reports whether a value has inner mutations, which replace those of the whole value.
func isNested(t reflect.Type) bool {
	t = deref(t)
	return !isSpecial(t) && (t.Kind() == reflect.Struct || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 || t.Kind() == reflect.Map)
}

// value mutates the inside of a value.
func (w *walker) value(path []any, f structField, v any) {
	t := deref(f.of)
	if isSpecial(t) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		o, ok := v.(Object)
		if !ok {
			return
		}
		w.add(path, Object{})
		w.add(path, "x")
		for _, f := range fieldsOf(t) {
			if f.name != "managedFields" {
				w.field(append(path, f.name), f, o)
			}
		}
	case reflect.Slice:
		l, ok := v.([]any)
		if !ok {
			return
		}
		w.list(path, structField{f.name, t.Elem(), f.enum, false}, l)
	case reflect.Map:
		o, ok := v.(Object)
		if !ok {
			return
		}
		w.mapping(path, structField{f.name, t.Elem(), nil, false}, o)
	}
}

func (w *walker) list(path []any, element structField, l []any) {
	w.add(path, []any{})
	w.add(path, "x")
	if len(l) == 0 {
		return
	}
	w.add(path, append(slices.Clone(l), l[0]))
	w.add(path, append(slices.Clone(l), nil))
	for _, n := range []int{9, 17, 33, 65, 129} {
		w.add(path, many(l[0], n))
	}
	if !isNested(element.of) {
		w.add(path, many(l[0], 1025))
	}
	for i, v := range l {
		if i > 7 {
			break
		}
		at := append(path, i)
		w.add(at, removed{})
		if !isNested(element.of) {
			for _, c := range candidates(element, 0) {
				w.add(at, c)
			}
			continue
		}
		w.value(at, element, v)
	}
	if isNested(element.of) {
		for _, c := range candidates(element, 1) {
			w.add(append(path, len(l)), c)
		}
	}
}

// many returns a list of n copies of an element, with different names.
func many(v any, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = v
		switch v := v.(type) {
		case string:
			out[i] = v + strconv.Itoa(i)
		case Object:
			for _, f := range []string{"name", "type", "key", "mountPath", "containerPort", "port", "ip", "request"} {
				switch x := v[f].(type) {
				case string:
					out[i] = set(out[i], []any{f}, x+strconv.Itoa(i))
				case float64:
					out[i] = set(out[i], []any{f}, x+float64(i))
				}
			}
		}
	}
	return out
}

func (w *walker) mapping(path []any, element structField, o Object) {
	w.add(path, Object{})
	w.add(path, "x")
	sample := any("x")
	if all := candidates(element, 0); len(all) > 0 {
		sample = all[0]
	}
	for k, v := range o {
		sample = v
		_ = k
		break
	}
	for _, k := range mapKeys {
		w.add(append(path, k), sample)
	}
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		at := append(path, k)
		w.add(at, removed{})
		if i > 3 {
			continue
		}
		if isNested(element.of) {
			w.value(at, element, o[k])
			continue
		}
		for _, c := range candidates(element, 0) {
			w.add(at, c)
		}
	}
}

// thin keeps one mutation of each path that a write does not reach.
func thin(all []Mutation, reached func(path []any) bool) []Mutation {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(m Mutation) bool {
		if reached(m.Path) {
			return false
		}
		path := showPath(m.Path)
		known := seen[path]
		seen[path] = true
		return known
	})
}

// reaches returns the paths that a write through a subresource can change. It resets the others.
func reaches(subresource string) func(path []any) bool {
	under := func(names ...string) func(path []any) bool {
		return func(path []any) bool {
			return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(showPath(path), n) })
		}
	}
	switch subresource {
	case "status", "approval":
		return under("status")
	case "resize":
		return under("spec.containers", "spec.initContainers", "spec.resources")
	case "ephemeralcontainers":
		return under("spec.ephemeralContainers")
	case "finalize":
		return under("spec")
	case "scale":
		return under("spec", "status", "metadata")
	}
	return func(path []any) bool { return path[0] != "status" }
}
