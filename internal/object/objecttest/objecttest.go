// Package objecttest makes objects for tests: random values of Go types (JSON), random trees (Value), and trees from YAML
// (Tree). It knows the JSON of types with their own JSON methods. The values need not be valid.
package objecttest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
)

// JSON returns the JSON of a random value of a type. The same seed makes the same value.
func JSON(seed uint64, t reflect.Type) []byte {
	return random{rand.New(rand.NewPCG(seed, 7))}.value(nil, t, 0)
}

// A random generates JSON for types.
type random struct{ *rand.Rand }

// special has values of types with their own JSON methods.
var special = map[string][]string{
	"v1.Time":                         {`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05+01:00"`},
	"v1.MicroTime":                    {`"2026-01-02T03:04:05.000006Z"`},
	"v1.Duration":                     {`"1m2s"`, `"0s"`},
	"v1.FieldsV1":                     {`{"f:a":{".":{}}}`, `{}`},
	"resource.Quantity":               {`"1500m"`, `"12Gi"`, `"999m"`, `"7"`, `"20M"`, `"0Ki"`, `3`, `"0"`, `"1e3"`},
	"intstr.IntOrString":              {`5`, `-5`, `"80%"`, `0`, `""`, `"\u0041"`},
	"runtime.RawExtension":            {`{"a":[1,{"b":null}]}`, `{}`},
	"v1.JSON":                         {`{"a":1}`, `"x"`, `[]`},
	"v1.JSONSchemaPropsOrBool":        {`true`, `{"type":"string"}`},
	"v1.JSONSchemaPropsOrArray":       {`[{"type":"string"}]`, `{"type":"string"}`},
	"v1.JSONSchemaPropsOrStringArray": {`["a"]`, `{"type":"string"}`},
}

var texts = []string{"", "x", "a-b.c", `"quoted" \ and more`, "é\u2028<&>", "a\nb"}

func (r random) value(dst []byte, t reflect.Type, depth int) []byte {
	if samples, ok := special[t.String()]; ok {
		return append(dst, samples[r.IntN(len(samples))]...)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.value(dst, t.Elem(), depth)
	case reflect.String:
		text, _ := json.Marshal(texts[r.IntN(len(texts))])
		return append(dst, text...)
	case reflect.Bool:
		return fmt.Append(dst, r.IntN(2) == 0)
	case reflect.Int32:
		return fmt.Append(dst, int32(r.Uint32()>>r.IntN(32)))
	case reflect.Int64, reflect.Int:
		return fmt.Append(dst, int64(r.Uint64()>>r.IntN(64)))
	case reflect.Float64:
		return fmt.Append(dst, r.NormFloat64())
	case reflect.Struct:
		return append(r.members(append(dst, '{'), t, depth+1, new(bool)), '}')
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return fmt.Appendf(dst, "%q", base64.StdEncoding.EncodeToString([]byte(texts[r.IntN(len(texts))])))
		}
		return r.several(dst, '[', ']', depth, func(dst []byte, _ int) []byte { return r.value(dst, t.Elem(), depth) })
	case reflect.Map:
		first := r.IntN(5)
		return r.several(dst, '{', '}', depth, func(dst []byte, i int) []byte {
			dst = fmt.Appendf(dst, "\"%c\":", 'a'+(first+i)%5)
			return r.value(dst, t.Elem(), depth)
		})
	}
	panic("no JSON for " + t.String())
}

func (r random) several(dst []byte, open, end byte, depth int, one func(dst []byte, i int) []byte) []byte {
	n := r.IntN(4)
	if depth > 6 {
		n = 0
	}
	dst = append(dst, open)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, i)
	}
	return append(dst, end)
}

// members writes fields of t in random order, some null and many missing.
func (r random) members(dst []byte, t reflect.Type, depth int, more *bool) []byte {
	for _, i := range r.Perm(t.NumField()) {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" {
			dst = r.members(dst, inner, depth, more)
			continue
		}
		if r.IntN(1+depth) > 1 || depth > 9 {
			continue
		}
		if *more {
			dst = append(dst, ',')
		}
		*more = true
		dst = fmt.Appendf(dst, "%q:", name)
		if r.IntN(12) == 0 {
			dst = append(dst, "null"...)
			continue
		}
		dst = r.value(dst, f.Type, depth)
	}
	return dst
}
