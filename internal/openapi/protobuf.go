package openapi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// OpenAPI v2 in protobuf, as github.com/google/gnostic-models/openapiv2 defines
// it. What may be anything is there as the text of its YAML.

// An encoding appends a value as the field of that number of a message.
type encoding func(dst []byte, number protowire.Number, v any) []byte

// A message tells the number and the encoding of a field by its name in JSON.
// No encoding means that there is no such field.
type message func(name string) (protowire.Number, encoding)

// field encodes an object.
func (m message) field(dst []byte, number protowire.Number, v any) []byte {
	return nested(dst, number, func(dst []byte) []byte { return m.append(dst, fieldsOf(v)) })
}

// fieldsOf returns an object that was put together or was decoded.
func fieldsOf(v any) fields {
	if f, ok := v.(map[string]any); ok {
		return f
	}
	return v.(fields)
}

// append appends the fields of an object, without a number and a length.
func (m message) append(dst []byte, f fields) []byte {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		number, encode := m(name)
		if encode == nil {
			panic(fmt.Sprintf("openapi: OpenAPI has no place for the field %s", name))
		}
		if strings.HasPrefix(name, "x-") {
			dst = named(encode)(dst, number, fields{name: f[name]})
		} else {
			dst = encode(dst, number, f[name])
		}
	}
	return dst
}

// nested puts the number and the length of a message before what fill appends.
func nested(dst []byte, number protowire.Number, fill func([]byte) []byte) []byte {
	dst = protowire.AppendTag(dst, number, protowire.BytesType)
	start := len(dst)
	dst = fill(dst)
	var buf [10]byte
	length := protowire.AppendVarint(buf[:0], uint64(len(dst)-start))
	return slices.Insert(dst, start, length...)
}

// in wraps a value into a message that has nothing but it.
func in(inner protowire.Number, encode encoding) encoding {
	return func(dst []byte, number protowire.Number, v any) []byte {
		return nested(dst, number, func(dst []byte) []byte { return encode(dst, inner, v) })
	}
}

// named encodes an object whose names are data: each is a message of the name
// and the value.
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

// literal encodes anything as its YAML.
func literal(dst []byte, number protowire.Number, v any) []byte {
	return nested(dst, number, func(dst []byte) []byte { return nested(dst, 2, func(dst []byte) []byte { return appendYAML(dst, v) }) })
}

// The numbers of the fields, message by message.

func protoDocument(name string) (protowire.Number, encoding) {
	switch name {
	case "swagger":
		return 1, text
	case "info":
		return 2, message(protoInfo).field
	case "paths":
		return 8, in(2, named(message(protoPathItem).field))
	case "definitions":
		return 9, in(1, named(message(protoSchema).field))
	case "parameters":
		return 10, in(1, named(protoParameter))
	case "security":
		return 12, list(in(1, named(in(1, list(text)))))
	case "securityDefinitions":
		return 13, in(1, named(in(2, message(protoAPIKey).field)))
	}
	return 0, nil
}

func protoInfo(name string) (protowire.Number, encoding) {
	switch name {
	case "title":
		return 1, text
	case "version":
		return 2, text
	}
	return 0, nil
}

func protoAPIKey(name string) (protowire.Number, encoding) {
	switch name {
	case "type":
		return 1, text
	case "name":
		return 2, text
	case "in":
		return 3, text
	case "description":
		return 4, text
	}
	return 0, nil
}

func protoPathItem(name string) (protowire.Number, encoding) {
	operation := message(protoOperation).field
	switch name {
	case "get":
		return 2, operation
	case "put":
		return 3, operation
	case "post":
		return 4, operation
	case "delete":
		return 5, operation
	case "patch":
		return 8, operation
	case "parameters":
		return 9, list(protoParameterItem)
	}
	return 0, nil
}

func protoOperation(name string) (protowire.Number, encoding) {
	switch name {
	case "tags":
		return 1, list(text)
	case "description":
		return 3, text
	case "operationId":
		return 5, text
	case "produces":
		return 6, list(text)
	case "consumes":
		return 7, list(text)
	case "parameters":
		return 8, list(protoParameterItem)
	case "responses":
		return 9, in(1, named(in(1, message(protoResponse).field)))
	case "schemes":
		return 10, list(text)
	}
	return extension(name, 13)
}

func protoResponse(name string) (protowire.Number, encoding) {
	switch name {
	case "description":
		return 1, text
	case "schema":
		return 2, in(1, message(protoSchema).field)
	}
	return 0, nil
}

// protoParameterItem encodes a parameter or a reference to one.
func protoParameterItem(dst []byte, number protowire.Number, v any) []byte {
	if ref, ok := v.(fields)["$ref"]; ok {
		return in(2, in(1, text))(dst, number, ref)
	}
	return in(1, protoParameter)(dst, number, v)
}

// protoParameter encodes a parameter, which is another message for each place
// that it can be in.
func protoParameter(dst []byte, number protowire.Number, v any) []byte {
	switch v.(fields)["in"] {
	case "body":
		return in(1, message(protoBody).field)(dst, number, v)
	case "query":
		return in(2, in(3, message(protoQuery).field))(dst, number, v)
	default:
		return in(2, in(4, message(protoPathParameter).field))(dst, number, v)
	}
}

func protoBody(name string) (protowire.Number, encoding) {
	switch name {
	case "name":
		return 2, text
	case "in":
		return 3, text
	case "required":
		return 4, boolean
	case "schema":
		return 5, message(protoSchema).field
	}
	return 0, nil
}

func protoQuery(name string) (protowire.Number, encoding) {
	switch name {
	case "in":
		return 2, text
	case "description":
		return 3, text
	case "name":
		return 4, text
	case "type":
		return 6, text
	case "uniqueItems":
		return 20, boolean
	}
	return 0, nil
}

func protoPathParameter(name string) (protowire.Number, encoding) {
	switch name {
	case "required":
		return 1, boolean
	case "in":
		return 2, text
	case "description":
		return 3, text
	case "name":
		return 4, text
	case "type":
		return 5, text
	case "uniqueItems":
		return 19, boolean
	}
	return 0, nil
}

func protoSchema(name string) (protowire.Number, encoding) {
	switch name {
	case "$ref":
		return 1, text
	case "format":
		return 2, text
	case "title":
		return 3, text
	case "description":
		return 4, text
	case "required":
		return 19, list(text)
	case "enum":
		return 20, list(literal)
	case "additionalProperties":
		return 21, protoAdditional
	case "type":
		return 22, in(1, text)
	case "items":
		return 23, in(1, message(protoSchema).field)
	case "properties":
		return 25, in(1, named(message(protoSchema).field))
	case "externalDocs":
		return 29, message(protoExternalDocs).field
	case "example":
		return 30, literal
	}
	if number, encode := protoLimits(name); encode != nil {
		return number, encode
	}
	return extension(name, 31)
}

// protoLimits are the fields of a schema that limit values.
func protoLimits(name string) (protowire.Number, encoding) {
	switch name {
	case "multipleOf":
		return 6, double
	case "maximum":
		return 7, double
	case "exclusiveMaximum":
		return 8, boolean
	case "minimum":
		return 9, double
	case "exclusiveMinimum":
		return 10, boolean
	case "maxLength":
		return 11, integer
	case "minLength":
		return 12, integer
	case "pattern":
		return 13, text
	case "maxItems":
		return 14, integer
	case "minItems":
		return 15, integer
	case "uniqueItems":
		return 16, boolean
	case "maxProperties":
		return 17, integer
	case "minProperties":
		return 18, integer
	}
	return 0, nil
}

// protoAdditional encodes a schema, or whether there may be any value.
func protoAdditional(dst []byte, number protowire.Number, v any) []byte {
	if _, ok := v.(bool); ok {
		return in(2, boolean)(dst, number, v)
	}
	return in(1, message(protoSchema).field)(dst, number, v)
}

func protoExternalDocs(name string) (protowire.Number, encoding) {
	switch name {
	case "description":
		return 1, text
	case "url":
		return 2, text
	}
	return 0, nil
}

func extension(name string, number protowire.Number) (protowire.Number, encoding) {
	if strings.HasPrefix(name, "x-") {
		return number, literal
	}
	return 0, nil
}
