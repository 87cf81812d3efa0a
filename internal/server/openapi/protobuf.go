package openapi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Protobuf documents have the messages of github.com/google/gnostic-models, for both versions of
// OpenAPI. Free-form values are the text of their YAML.

// An encoding appends a value as the field of that number.
type encoding func(dst []byte, number protowire.Number, v any) []byte

// A message has the number and the encoding of each field, by its JSON name. Fields whose names
// begin with x- share one.
type message map[string]numbered

type numbered struct {
	number protowire.Number
	encode encoding
}

const extension = "x-"

// field encodes an object.
func (m message) field(dst []byte, number protowire.Number, v any) []byte {
	return nested(dst, number, func(dst []byte) []byte { return m.append(dst, fieldsOf(v)) })
}

// fieldsOf returns an object, built or decoded, as fields.
func fieldsOf(v any) fields {
	if f, ok := v.(map[string]any); ok {
		return f
	}
	return v.(fields)
}

// append appends the fields of an object, without its number and length.
func (m message) append(dst []byte, f fields) []byte {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if strings.HasPrefix(name, extension) {
			dst = m.one(dst, extension, fields{name: f[name]})
		} else {
			dst = m.one(dst, name, f[name])
		}
	}
	return dst
}

// one appends one field.
func (m message) one(dst []byte, name string, v any) []byte {
	f, ok := m[name]
	if !ok {
		panic(fmt.Sprintf("openapi: protobuf has no place for the field %s", name))
	}
	return f.encode(dst, f.number, v)
}

// nested appends a message: its number, its length, and the output of fill.
func nested(dst []byte, number protowire.Number, fill func([]byte) []byte) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	start := len(dst)
	dst = fill(dst)
	var buf [10]byte
	length := protowire.AppendVarint(buf[:0], uint64(len(dst)-start))
	return slices.Insert(dst, start, length...)
}

// in wraps a value in a message that has only that field.
func in(inner protowire.Number, encode encoding) encoding {
	return func(dst []byte, number protowire.Number, v any) []byte {
		return nested(dst, number, func(dst []byte) []byte { return encode(dst, inner, v) })
	}
}

// orReference encodes a reference or a value.
func orReference(encode encoding) encoding {
	reference, value := in(2, in(1, text)), in(1, encode)
	return func(dst []byte, number protowire.Number, v any) []byte {
		if ref, ok := fieldsOf(v)["$ref"]; ok {
			return reference(dst, number, ref)
		}
		return value(dst, number, v)
	}
}

// orBoolean encodes a boolean or a schema.
func orBoolean(encode encoding) encoding {
	allows, schema := in(2, boolean), in(1, encode)
	return func(dst []byte, number protowire.Number, v any) []byte {
		if _, ok := v.(bool); ok {
			return allows(dst, number, v)
		}
		return schema(dst, number, v)
	}
}

// named encodes a map: each entry is a message with the name and the value.
func named(encode encoding) encoding {
	return func(dst []byte, number protowire.Number, v any) []byte {
		f := fieldsOf(v)
		for _, name := range slices.Sorted(maps.Keys(f)) {
			dst = nested(dst, number, func(dst []byte) []byte {
				return encode(text(dst, 1, name), 2, f[name])
			})
		}
		return dst
	}
}

func list(encode encoding) encoding {
	return func(dst []byte, number protowire.Number, v any) []byte {
		switch v := v.(type) {
		case []string:
			return elements(dst, number, v, encode)
		case []fields:
			return elements(dst, number, v, encode)
		case []any:
			return elements(dst, number, v, encode)
		default:
			return elements(dst, number, v.([]raw), encode)
		}
	}
}

func elements[T any](dst []byte, number protowire.Number, list []T, encode encoding) []byte {
	for _, v := range list {
		dst = encode(dst, number, v)
	}
	return dst
}

func text(dst []byte, number protowire.Number, v any) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	return protowire.AppendString(dst, v.(string))
}

func boolean(dst []byte, number protowire.Number, v any) []byte {
	dst = protowire.AppendTag(dst, number, protowire.VarintType)
	return protowire.AppendVarint(dst, protowire.EncodeBool(v.(bool)))
}

func integer(dst []byte, number protowire.Number, v any) []byte {
	dst = protowire.AppendTag(dst, number, protowire.VarintType)
	return protowire.AppendVarint(dst, uint64(v.(int64)))
}

func double(dst []byte, number protowire.Number, v any) []byte {
	dst = protowire.AppendTag(dst, number, protowire.Fixed64Type)
	f, ok := v.(float64)
	if !ok {
		f = float64(v.(int64))
	}
	return protowire.AppendFixed64(dst, math.Float64bits(f))
}

// literal encodes any value as YAML.
func literal(dst []byte, number protowire.Number, v any) []byte {
	return nested(dst, number, func(dst []byte) []byte { return nested(dst, 2, func(dst []byte) []byte { return appendYAML(dst, v) }) })
}
