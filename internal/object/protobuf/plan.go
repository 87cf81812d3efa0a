package protobuf

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A message is the plan for a struct type.
type message struct {
	types  *Types
	fields []*field // by their numbers
	byName map[string]*field
	slots  int
}

// A field is the plan for a field of a message.
type field struct {
	number   int
	tag      []byte
	optional bool
	inline   []*field // in place of the members below: an inline struct, whose fields are the object's
	slot     int      // index of the field's span; -1 if it has no JSON name
	write    write
	absent   []byte // output for a field that is not in the document
}

// A write parses a value other than null, and appends it as a field with a tag.
type write func(w *writer, tag []byte) error

func (types *Types) message(t reflect.Type) (*message, error) {
	if m, ok := types.messages.Load(t); ok {
		return m.(*message), nil
	}
	m := &message{types: types, byName: map[string]*field{}}
	var err error
	if m.fields, err = m.add(t); err != nil {
		return nil, err
	}
	kept, _ := types.messages.LoadOrStore(t, m)
	return kept.(*message), nil
}

// add adds the fields of t, which are fields of the object.
func (m *message) add(t reflect.Type) ([]*field, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a %s is no message", t)
	}
	var fields []*field
	for i := range t.NumField() {
		f, err := m.field(t.Field(i))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, t.Field(i).Name, err)
		}
		if f != nil {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b *field) int { return a.number - b.number })
	return fields, nil
}

// field returns nil for a field without a number.
func (m *message) field(s reflect.StructField) (*field, error) {
	_, rest, _ := strings.Cut(s.Tag.Get("protobuf"), ",")
	if rest == "" {
		return nil, nil
	}
	text, _, _ := strings.Cut(rest, ",")
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	f := &field{number: number, tag: tagOf(number, s.Type), slot: -1}
	t := s.Type
	if f.optional = t.Kind() == reflect.Pointer; f.optional {
		t = t.Elem()
	}
	name, options, _ := strings.Cut(s.Tag.Get("json"), ",")
	if s.Anonymous && name == "" && t.Kind() == reflect.Struct && !readsItself(t) {
		f.inline, err = m.add(t)
		return f, err
	}
	if !f.optional {
		if f.absent, err = absent(t, f.tag); err != nil {
			return nil, err
		}
	}
	if name == "-" && options == "" {
		return f, nil
	}
	if name == "" {
		name = s.Name
	}
	if f.write, err = m.types.writeOf(t); err != nil {
		return nil, err
	}
	f.slot = m.slots
	m.slots++
	m.byName[name] = f
	return f, nil
}

// tagOf returns the tag of a field: its number and wire type. The wire type follows from the Go
// type: those in struct tags differ from the ones that Marshal writes.
func tagOf(number int, t reflect.Type) []byte {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && !readsItself(t) {
		t = t.Elem()
	}
	form := uint64(2) // length-delimited
	switch t.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64:
		form = 0
	case reflect.Float64:
		form = 1
	}
	return appendVarint(nil, uint64(number)<<3|form)
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	marshaler   = reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
)

// readsItself reports whether a type has its own JSON or protobuf methods.
func readsItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(unmarshaler) || t.Kind() != reflect.Struct && pointer.Implements(marshaler)
}

// absent returns the output for a missing field that is not a pointer.
func absent(t reflect.Type, tag []byte) ([]byte, error) {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		return nil, nil
	case reflect.Float64:
		return append(slices.Clone(tag), make([]byte, 8)...), nil
	case reflect.Struct:
		data, err := marshal(reflect.New(t))
		if err != nil {
			return nil, err
		}
		return append(appendVarint(slices.Clone(tag), uint64(len(data))), data...), nil
	default:
		return append(slices.Clone(tag), 0), nil
	}
}

// marshal returns the message of a value, given as a pointer.
func marshal(v reflect.Value) ([]byte, error) {
	m, ok := v.Interface().(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("a %s has no protobuf form", v.Type())
	}
	return m.Marshal()
}
