package protobuf_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/objecttest"
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
				doc := objecttest.JSON(seed, typ)
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
