package former

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Message is an object that decodes its protobuf. It encodes as JSON.
type Message interface{ Unmarshal(raw []byte) error }

// removed is a Message of one of the types of this package.
type removed struct{ value reflect.Value }

func messageOf[T any]() Message { return &removed{reflect.ValueOf(new(T)).Elem()} }

// Unmarshal implements Message.
func (r *removed) Unmarshal(raw []byte) error { return unmarshal(raw, r.value) }

// MarshalJSON implements json.Marshaler.
func (r *removed) MarshalJSON() ([]byte, error) { return json.Marshal(r.value.Interface()) }

// unmarshal decodes a message into a struct, by the tag wire of its fields. It skips others.
func unmarshal(raw []byte, into reflect.Value) error {
	for len(raw) > 0 {
		number, form, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return protowire.ParseError(n)
		}
		raw = raw[n:]
		if n = protowire.ConsumeFieldValue(number, form, raw); n < 0 {
			return protowire.ParseError(n)
		}
		if f := fieldOf(into, number); f.IsValid() {
			if err := set(f, form, raw[:n]); err != nil {
				return err
			}
		}
		raw = raw[n:]
	}
	return nil
}

// fieldOf returns the field with a number, or the zero Value.
func fieldOf(of reflect.Value, number protowire.Number) reflect.Value {
	for i := range of.NumField() {
		if of.Type().Field(i).Tag.Get("wire") == strconv.Itoa(int(number)) {
			return of.Field(i)
		}
	}
	return reflect.Value{}
}

// set sets a field, or adds an element to it.
func set(f reflect.Value, form protowire.Type, value []byte) error {
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		}
		return set(f.Elem(), form, value)
	}
	if form == protowire.VarintType {
		return setNumber(f, value)
	}
	content, n := protowire.ConsumeBytes(value)
	if form != protowire.BytesType || n < 0 {
		return fmt.Errorf("%s has a value of wire type %d", f.Type(), form)
	}
	if f.CanInterface() {
		if m, ok := f.Addr().Interface().(Message); ok {
			return m.Unmarshal(content)
		}
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(string(content))
	case reflect.Struct:
		return unmarshal(content, f)
	case reflect.Slice:
		element := reflect.New(f.Type().Elem()).Elem()
		if err := set(element, form, value); err != nil {
			return err
		}
		f.Set(reflect.Append(f, element))
	case reflect.Map:
		var entry struct {
			Key   string `wire:"1"`
			Value string `wire:"2"`
		}
		if err := unmarshal(content, reflect.ValueOf(&entry).Elem()); err != nil {
			return err
		}
		if f.IsNil() {
			f.Set(reflect.MakeMap(f.Type()))
		}
		f.SetMapIndex(reflect.ValueOf(entry.Key), reflect.ValueOf(entry.Value))
	default:
		return fmt.Errorf("%s has a value of wire type %d", f.Type(), form)
	}
	return nil
}

// setNumber sets a number or a boolean.
func setNumber(f reflect.Value, value []byte) error {
	number, n := protowire.ConsumeVarint(value)
	if n < 0 {
		return protowire.ParseError(n)
	}
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(number != 0)
	case reflect.Int32, reflect.Int64:
		f.SetInt(int64(number))
	default:
		return fmt.Errorf("%s has a number", f.Type())
	}
	return nil
}
