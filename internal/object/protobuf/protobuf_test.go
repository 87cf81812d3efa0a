package protobuf_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/protobuf"
)

// types returns all types that are served in protobuf.
func types() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, v := range []any{metav1.PartialObjectMetadata{}, metav1.Status{}, apidiscoveryv2.APIGroupDiscoveryList{}} {
		all[reflect.TypeOf(v).String()] = reflect.TypeOf(v)
	}
	for _, d := range builtin.Definitions() {
		for _, v := range d.Versions {
			if v.New != nil {
				t := reflect.TypeOf(v.New()).Elem()
				all[t.String()] = t
			}
		}
	}
	return all
}

// marshal decodes JSON into a Go value and encodes that as protobuf.
func marshal(t reflect.Type, doc []byte) ([]byte, error) {
	v := reflect.New(t).Interface()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, v); err != nil {
		return nil, err
	}
	return v.(interface{ Marshal() ([]byte, error) }).Marshal()
}

// For random objects of every served type, the output equals that of the Go type.
func TestAsTheTypesDo(t *testing.T) {
	var served protobuf.Types
	const objects = 30
	all := types()
	if len(all) < 60 {
		t.Fatalf("%d types", len(all))
	}
	for name, typ := range all {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(objects) {
				r := random{rand.New(rand.NewPCG(seed, 7))}
				doc := r.value(nil, typ, 0)
				want, err := marshal(typ, doc)
				if err != nil {
					t.Fatalf("%v of %s", err, doc)
				}
				got, err := served.Append(nil, typ, doc)
				if err != nil {
					t.Fatalf("%v of %s", err, doc)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("seed %d: of\n%s\nthere is\n%q, and the type has\n%q", seed, doc, got, want)
				}
			}
		})
	}
}

// JSON that the type rejects is an error here too.
func TestErrors(t *testing.T) {
	var served protobuf.Types
	for _, tt := range []struct{ doc, want string }{
		{``, "unexpected end of JSON input"},
		{`{"metadata":{"name":"x"}`, "unexpected end of JSON input"},
		{`{"metadata":{"name":"x`, "metadata: name: unexpected end of JSON input"},
		{`[]`, `expected '{', found '['`},
		{`{"metadata":{"name":7}}`, `metadata: name: expected '"', found '7'`},
		{`{"spec":{"priority":"x"}}`, `spec: priority: expected a number or a word, found '"'`},
		{`{"spec":{"priority":3000000000}}`, `spec: priority: strconv.ParseInt: parsing "3000000000": value out of range`},
		{`{"spec":{"hostNetwork":1}}`, `spec: hostNetwork: expected true or false, found 1`},
		{`{"spec":{"containers":{}}}`, `spec: containers: expected '[', found '{'`},
		{`{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"x"}}]}}`, `spec: volumes: emptyDir: sizeLimit: quantities must match the regular expression`},
	} {
		pod := reflect.TypeFor[corev1.Pod]()
		got, err := served.Append(nil, pod, []byte(tt.doc))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v, not %s", tt.doc, got, err, tt.want)
		}
		if _, err := marshal(pod, []byte(tt.doc)); err == nil {
			t.Errorf("%s is no error for the type", tt.doc)
		}
	}
}

// Equivalent spellings of JSON have the same output.
func TestSpellings(t *testing.T) {
	var served protobuf.Types
	pod := reflect.TypeFor[corev1.Pod]()
	for _, doc := range []string{
		" {\n\t\"metadata\" : { \"name\" : \"x\" , \"labels\":{ \"b\":\"\\u0041\\\\\\\"\", \"a\":\"\" } } } ",
		`{"metadata":{"n\u0061me":"x","Name":"y","unknown":[{"a":"]}\\"},null,1.5e3,"\\\""]},"x":{}}`,
		`{"spec":{"nodeSelector":{"z":"1","a":"2","m":null},"containers":[null,{"name":null,"args":["a",null,"\ud83d\ude00"]}],"volumes":[],"tolerations":null}}`,
		"{\"metadata\":{\"name\":\"\xff\"}}",
		`null`,
	} {
		want, err := marshal(pod, []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if doc == `null` {
			doc = `{}` // an object is required
		}
		got, err := served.Append(nil, pod, []byte(doc))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %s there is\n%q, %v, and the type has\n%q", doc, got, err, want)
		}
	}
}

// A random generates JSON for types.
type random struct{ *rand.Rand }

// special has values of types with their own JSON methods.
var special = map[string][]string{
	"v1.Time":                         {`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05+01:00"`},
	"v1.MicroTime":                    {`"2026-01-02T03:04:05.000006Z"`},
	"v1.Duration":                     {`"1m2s"`, `"0s"`},
	"v1.FieldsV1":                     {`{"f:a":{".":{}}}`, `{}`},
	"resource.Quantity":               {`"1500m"`, `"12Gi"`, `3`, `"0"`, `"1e3"`},
	"intstr.IntOrString":              {`5`, `"80%"`, `0`, `""`},
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
