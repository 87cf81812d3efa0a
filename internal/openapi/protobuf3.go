package openapi

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// OpenAPI v3 in protobuf, as github.com/google/gnostic-models/openapiv3 defines
// it.

// protobuf3 makes it of the JSON, which is what nearly everybody asks for.
func protobuf3(doc []byte) []byte {
	var f fields
	if err := utiljson.Unmarshal(doc, (*map[string]any)(&f)); err != nil {
		panic(fmt.Sprintf("openapi: a document of OpenAPI v3 is no JSON: %v", err))
	}
	return message(proto3Document).append(make([]byte, 0, len(doc)), f)
}

func proto3Document(name string) (protowire.Number, encoding) {
	switch name {
	case "openapi":
		return 1, text
	case "info":
		return 2, message(proto3Info).field
	case "paths":
		return 4, in(1, named(message(proto3PathItem).field))
	case "components":
		return 5, message(proto3Components).field
	}
	return 0, nil
}

func proto3Info(name string) (protowire.Number, encoding) {
	switch name {
	case "title":
		return 1, text
	case "version":
		return 6, text
	}
	return 0, nil
}

func proto3Components(name string) (protowire.Number, encoding) {
	switch name {
	case "schemas":
		return 1, in(1, named(proto3Schema))
	case "securitySchemes":
		return 7, in(1, named(in(1, message(proto3SecurityScheme).field)))
	}
	return 0, nil
}

func proto3SecurityScheme(name string) (protowire.Number, encoding) {
	switch name {
	case "type":
		return 1, text
	case "description":
		return 2, text
	case "name":
		return 3, text
	case "in":
		return 4, text
	}
	return 0, nil
}

func proto3PathItem(name string) (protowire.Number, encoding) {
	operation := message(proto3Operation).field
	switch name {
	case "get":
		return 4, operation
	case "put":
		return 5, operation
	case "post":
		return 6, operation
	case "delete":
		return 7, operation
	case "patch":
		return 10, operation
	case "parameters":
		return 13, list(in(1, message(proto3Parameter).field))
	}
	return 0, nil
}

func proto3Operation(name string) (protowire.Number, encoding) {
	switch name {
	case "tags":
		return 1, list(text)
	case "description":
		return 3, text
	case "operationId":
		return 5, text
	case "parameters":
		return 6, list(in(1, message(proto3Parameter).field))
	case "requestBody":
		return 7, in(1, message(proto3RequestBody).field)
	case "responses":
		return 8, in(2, named(in(1, message(proto3Response).field)))
	}
	return extension(name, 13)
}

func proto3Parameter(name string) (protowire.Number, encoding) {
	switch name {
	case "name":
		return 1, text
	case "in":
		return 2, text
	case "description":
		return 3, text
	case "required":
		return 4, boolean
	case "schema":
		return 10, proto3Schema
	}
	return 0, nil
}

func proto3RequestBody(name string) (protowire.Number, encoding) {
	switch name {
	case "content":
		return 2, in(1, named(message(proto3MediaType).field))
	case "required":
		return 3, boolean
	}
	return 0, nil
}

func proto3Response(name string) (protowire.Number, encoding) {
	switch name {
	case "description":
		return 1, text
	case "content":
		return 3, in(1, named(message(proto3MediaType).field))
	}
	return 0, nil
}

func proto3MediaType(name string) (protowire.Number, encoding) {
	if name == "schema" {
		return 1, proto3Schema
	}
	return 0, nil
}

// proto3Schema encodes a schema or a reference to one.
func proto3Schema(dst []byte, number protowire.Number, v any) []byte {
	if ref, ok := fieldsOf(v)["$ref"]; ok {
		return in(2, in(1, text))(dst, number, ref)
	}
	return in(1, message(proto3SchemaField).field)(dst, number, v)
}

func proto3SchemaField(name string) (protowire.Number, encoding) {
	switch name {
	case "nullable":
		return 1, boolean
	case "externalDocs":
		return 6, message(protoExternalDocs).field
	case "example":
		return 7, literal
	case "title":
		return 9, text
	case "required":
		return 23, list(text)
	case "enum":
		return 24, list(literal)
	case "type":
		return 25, text
	case "allOf":
		return 26, list(proto3Schema)
	case "oneOf":
		return 27, list(proto3Schema)
	case "anyOf":
		return 28, list(proto3Schema)
	case "not":
		return 29, message(proto3SchemaField).field
	case "items":
		return 30, in(1, proto3Schema)
	case "properties":
		return 31, in(1, named(proto3Schema))
	case "additionalProperties":
		return 32, proto3Additional
	case "default":
		return 33, proto3Default
	case "description":
		return 34, text
	case "format":
		return 35, text
	}
	if number, encode := protoLimits(name); encode != nil {
		return number + proto3LimitShift, encode
	}
	return extension(name, 36)
}

// proto3LimitShift is by how much the numbers of limits are higher than they are
// in OpenAPI v2.
const proto3LimitShift = 4

// proto3Additional encodes a schema, or whether there may be any value.
func proto3Additional(dst []byte, number protowire.Number, v any) []byte {
	if _, ok := v.(bool); ok {
		return in(2, boolean)(dst, number, v)
	}
	return in(1, proto3Schema)(dst, number, v)
}

// proto3Default encodes a number, a boolean or a string. There is no place for
// any other default.
func proto3Default(dst []byte, number protowire.Number, v any) []byte {
	return nested(dst, number, func(dst []byte) []byte {
		switch v.(type) {
		case int64, float64:
			return double(dst, 1, v)
		case bool:
			return boolean(dst, 2, v)
		case string:
			return text(dst, 3, v)
		}
		return dst
	})
}
