package rule

import (
	"reflect"
	"sync"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/gotype"
)

// A Set is the table with Go functions by type.
type Set struct {
	checks   map[reflect.Type]func(*Check, reflect.Value)
	defaults map[reflect.Type]func(map[string]any)
	apart    map[reflect.Type]bool
	given    []any // see Giving

	walks    sync.Map // of *walk, by type
	fillers  sync.Map // of *filler, by type
	declared sync.Map // of *declared, by type, and of *declaredField, by fieldOf
}

// A Function is a rule in Go for values of one type.
type Function func(*Set)

// On validates every value of a type in a walk, after the rules of the table. T is a pointer to the type: Go
// compiles the function once for all pointers, and would repeat it for each type, or where it is inlined.
//
//go:noinline
func On[T any](check func(c *Check, v T)) Function {
	return func(s *Set) {
		s.checks[reflect.TypeFor[T]().Elem()] = func(c *Check, v reflect.Value) { check(c, v.Addr().Interface().(T)) }
	}
}

// Default sets defaults in objects of a type, which may be a map, after those of the table and
// before those of nested objects.
func Default[T any](fill func(obj map[string]any)) Function {
	return defaultOf(reflect.TypeFor[T](), fill)
}

func defaultOf(t reflect.Type, fill func(obj map[string]any)) Function {
	return func(s *Set) { s.defaults[t] = fill }
}

// Apart excludes the values of a type from walks. Their rules depend on the surrounding object, and
// a rule for that walks over them.
func Apart[T any]() Function { return apartOf(reflect.TypeFor[T]()) }

func apartOf(t reflect.Type) Function {
	return func(s *Set) { s.apart[t] = true }
}

// Giving provides a value to the rules of the Set, as With does for one Check. It is for settings
// of the server.
func Giving[T any](value *T) Function {
	return func(s *Set) { s.given = append(s.given, value) }
}

// All combines several Functions.
func All(functions ...Function) Function {
	return func(s *Set) {
		for _, f := range functions {
			f(s)
		}
	}
}

// New returns a Set.
func New(functions ...Function) *Set {
	s := &Set{
		checks:   map[reflect.Type]func(*Check, reflect.Value){},
		defaults: map[reflect.Type]func(map[string]any){},
		apart:    map[reflect.Type]bool{},
	}
	All(functions...)(s)
	return s
}

// Lazy returns a function that creates a Set at its first call.
func Lazy(functions ...Function) func() *Set {
	return sync.OnceValue(func() *Set { return New(functions...) })
}

// Fill sets the defaults of an object of a Go type, from the outside to the inside.
func (s *Set) Fill(t reflect.Type, obj map[string]any) { s.filler(t).fill(obj) }

// A filler sets the defaults of one type.
type filler struct {
	constants []constant
	custom    []func(map[string]any)
	children  []child
}

// A constant is the default of a field.
type constant struct {
	name    string
	value   any
	pointer bool // an empty value is present
}

// A child is a field with nested defaults: an object, or a list or a map of objects.
type child struct {
	name   string
	values bool // of a map
	*filler
}

func (s *Set) filler(t reflect.Type) *filler {
	if f, ok := s.fillers.Load(t); ok {
		return f.(*filler)
	}
	building := map[reflect.Type]*filler{}
	f := s.buildFiller(t, building)
	known, _ := s.fillers.LoadOrStore(t, f)
	return known.(*filler)
}

func (s *Set) buildFiller(t reflect.Type, building map[reflect.Type]*filler) *filler {
	if f, ok := building[t]; ok {
		return f
	}
	f := &filler{}
	building[t] = f
	lines := table()[nameOf(t)]
	for member := range gotype.Fields(t) {
		pointer := member.Type.Kind() == reflect.Pointer
		if l := lines[member.JSONName]; l.fill != nil && (pointer || !isZero(l.fill)) {
			f.constants = append(f.constants, constant{member.JSONName, l.fill, pointer})
		}
		if whole := gotype.Deref(member.Type); whole.Kind() == reflect.Map && s.defaults[whole] != nil {
			f.children = append(f.children, child{name: member.JSONName, filler: &filler{custom: []func(map[string]any){s.defaults[whole]}}})
			continue
		}
		inner := elemOf(member.Type)
		if inner.Kind() != reflect.Struct || gotype.ReadsItself(inner) {
			continue
		}
		if below := s.buildFiller(inner, building); !below.idle() {
			f.children = append(f.children, child{member.JSONName, gotype.Deref(member.Type).Kind() == reflect.Map, below})
		}
	}
	for i := range t.NumField() {
		if in := t.Field(i); isInlined(in) && s.defaults[in.Type] != nil {
			f.custom = append(f.custom, s.defaults[in.Type])
		}
	}
	if s.defaults[t] != nil {
		f.custom = append(f.custom, s.defaults[t])
	}
	return f
}

// idle reports whether a filler has nothing to do. For a type that contains itself, only the part
// built so far counts.
func (f *filler) idle() bool {
	return len(f.constants)+len(f.custom)+len(f.children) == 0
}

// elemOf returns the element type behind pointers, lists and maps.
func elemOf(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
}

func (f *filler) fill(v any) {
	switch v := v.(type) {
	case map[string]any:
		f.fillObject(v)
	case []any:
		for _, e := range v {
			f.fill(e)
		}
	}
}

func (f *filler) fillObject(obj map[string]any) {
	for _, c := range f.constants {
		if v, ok := obj[c.name]; !ok || v == nil || !c.pointer && isZero(v) {
			obj[c.name] = object.Clone(c.value)
		}
	}
	for _, custom := range f.custom {
		custom(obj)
	}
	for _, c := range f.children {
		switch v := obj[c.name].(type) {
		case map[string]any:
			if !c.values {
				c.fill(v)
				continue
			}
			for _, e := range v {
				c.fill(e)
			}
		default:
			c.fill(v)
		}
	}
}

func isZero(v any) bool { return v == "" || v == int64(0) || v == false }
