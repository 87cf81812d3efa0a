package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/anykind/anykind/internal/object"
)

// fields is a JSON object under construction. Its values are those that appendJSON writes.
type fields map[string]any

// raw is encoded JSON.
type raw []byte

// appendJSON appends the JSON of v, with the fields of objects sorted. An OpenAPI document
// repeats a few parts many times; as raw values they are encoded once and then copied.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case raw:
		return append(dst, v...)
	case fields:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = object.AppendJSON(dst, k)
			dst = append(dst, ':')
			dst = appendJSON(dst, v[k])
		}
		return append(dst, '}')
	case []any:
		return appendList(dst, v)
	case []fields:
		return appendList(dst, v)
	case []raw:
		return appendList(dst, v)
	case []string:
		return appendList(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	default:
		return object.AppendJSON(dst, v)
	}
}

func appendList[T any](dst []byte, list []T) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, v)
	}
	return append(dst, ']')
}

// encode returns the JSON of a value that always has one.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return data
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
