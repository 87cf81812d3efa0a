package codec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
)

var (
	probe     = Expect{Kind: schema.GroupVersionKind{Group: "codec.test", Version: "v1", Kind: "Probe"}, Strict: true}
	configMap = Expect{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Strict: true,
		New: func() runtime.Object { return &corev1.ConfigMap{} }}
)

// Errors for bodies that do not decode are those of kube-apiserver.
func TestDecodeObjectErrors(t *testing.T) {
	lenient := probe
	lenient.Strict = false
	const untyped = "the object provided is unrecognized (must be of type Probe): "
	const parse = untyped + "couldn't get version/kind; json parse error: "
	const notStruct = ` into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`
	for _, tt := range []struct {
		want Expect
		m    Media
		body string
		err  string
	}{
		{probe, JSON, ``, parse + "unexpected end of JSON input (<empty>)"},
		{probe, JSON, `{`, parse + "unexpected end of JSON input ({)"},
		{probe, JSON, `[]`, parse + "json: cannot unmarshal array" + notStruct + " (5b5d)"},
		{probe, JSON, `"x"`, parse + "json: cannot unmarshal string" + notStruct + " (227822)"},
		{probe, JSON, `{"kind":1}`, parse + `json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1})`},
		{probe, JSON, `{"apiVersion":"codec.test/v1","kind":"Probe","metadata":{"name":"c"}} x`,
			parse + `invalid character 'x' after top-level value ({"apiVersion":"codec.test/v1", ...)`},
		{probe, JSON, `{'a':1}`, parse + `invalid character '\'' looking for beginning of object key string ({'a':1})`},
		{probe, JSON, `{"a":` + strings.Repeat("[", 10001), parse + `invalid character '[' exceeded max depth ({"a":[[[[[[[[[[[[[[[[[[[[[[[[[ ...)`},
		{probe, JSON, `{"apiVersion":"codec.test/v1","kind":"Probe","spec":1e400}`,
			`Probe in version "v1" cannot be handled as a Probe: json: cannot unmarshal number 1e400 into Go value of type float64`},
		{probe, JSON, `{"kind":"ConfigMap","data":{"a":1e400}}`,
			`ConfigMap in version "v1" cannot be handled as a Probe: json: cannot unmarshal number 1e400 into Go value of type float64`},
		{probe, JSON, `null`, untyped + `Object 'Kind' is missing in 'null' (6e756c6c)`},
		{probe, JSON, `{"Kind":"Probe"}`, untyped + `Object 'Kind' is missing in '{"Kind":"Probe"}' ({"Kind":"Probe"})`},
		{probe, JSON, `{"kind":null}`, untyped + `Object 'Kind' is missing in '{"kind":null}' ({"kind":null})`},
		{lenient, JSON, `{"kind":""}`, `Probe in version "v1" cannot be handled as a Probe: Object 'Kind' is missing in '{"kind":""}'`},
		{lenient, YAML, "# nothing\n", `Probe in version "v1" cannot be handled as a Probe: Object 'Kind' is missing in 'null'`},
		{lenient, JSON, ` {"spec":{}}` + "\n", `Probe in version "v1" cannot be handled as a Probe: Object 'Kind' is missing in '{"spec":{}}'`},
		{configMap, JSON, `{"ApiVersion":{}}`,
			`the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal object into Go struct field .apiVersion of type string ({"ApiVersion":{}})`},
		{configMap, JSON, `{"Kind":"Probe"}`, `Probe in version "v1" cannot be handled as a ConfigMap: no kind "Probe" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{probe, JSON, `{"apiVersion":"a/b/c","kind":"Probe"}`, untyped + `unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)`},
		{probe, JSON, `{"kind":"Probe"}`, `the API version in the data () does not match the expected API version (codec.test/v1)`},
		{probe, JSON, `{"apiVersion":"/","kind":"Probe"}`, `the API version in the data () does not match the expected API version (codec.test/v1)`},
		{probe, JSON, `{"apiVersion":"codec.test/v2","kind":"Probe"}`, `the API version in the data (codec.test/v2) does not match the expected API version (codec.test/v1)`},
		{configMap, JSON, `{"kind":"Probe"}`, `Probe in version "v1" cannot be handled as a ConfigMap: no kind "Probe" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{configMap, JSON, `{"apiVersion":"codec.test/v2","kind":"ConfigMap"}`,
			`ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "codec.test/v2" in scheme "pkg/runtime/scheme.go:111"`},
		{configMap, JSON, `{"kind":"Probe","data":1e400}`, `Probe in version "v1" cannot be handled as a ConfigMap: no kind "Probe" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{configMap, JSON, `{"apiVersion":"v1/","kind":"ConfigMap"}`,
			`ConfigMap in version "" cannot be handled as a ConfigMap: Object 'apiVersion' is missing in '{"apiVersion":"v1/","kind":"ConfigMap"}'`},

		{configMap, YAML, "apiVersion: v1/\nkind: ConfigMap", `ConfigMap in version "" cannot be handled as a ConfigMap: Object 'apiVersion' is missing in 'apiVersion: v1/
kind: ConfigMap'`},
		{configMap, CBOR, "\xa1", `the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: unexpected EOF (a1)`},
		{configMap, CBOR, "\xa1\x44kind\x45Probe", `Probe in version "v1" cannot be handled as a ConfigMap: no kind "Probe" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{configMap, CBOR, "\xa1\x44data\x01",
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: cbor: cannot unmarshal positive integer into Go struct field v1.ConfigMap.data of type map[string]string`},
		{probe, YAML, `a: [`, untyped + "yaml: line 1: did not find expected node content (613a205b)"},
		{probe, YAML, `5`, parse + "json: cannot unmarshal number" + notStruct + " (35)"},
		{probe, YAML, ``, untyped + "Object 'Kind' is missing in '' (<empty>)"},
		{probe, YAML, "z: .nan", untyped + "json: unsupported value: NaN (7a3a202e6e616e)"},
		{probe, YAML, bomb(), untyped + "yaml: document contains excessive aliasing (613a202661205b226c6f6c222c226c6f6c222c226c6f6c222c226c6f6c22 ...)"},
	} {
		_, _, err := DecodeObject(tt.m, []byte(tt.body), tt.want)
		if err == nil || status.Of(err).Code != 400 || err.Error() != tt.err {
			t.Errorf("%.60q:\n got %v\nwant %v", tt.body, err, tt.err)
		}
	}
}

// bomb returns a document of a few lines that expands to 43 million strings.
func bomb() string {
	var b strings.Builder
	b.WriteString(`a: &a ["lol","lol","lol","lol","lol","lol","lol","lol","lol"]` + "\n")
	for c := 'b'; c <= 'h'; c++ {
		item := fmt.Sprintf("*%c", c-1)
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.Join(slices.Repeat([]string{item}, 9), ","))
	}
	return b.String()
}

// Endless nesting is rejected in YAML as in JSON.
func TestDecodeYAMLDepth(t *testing.T) {
	for _, body := range []string{strings.Repeat("[", 1<<20), strings.Repeat("{a: ", 1<<18), strings.Repeat("- ", 1<<20)} {
		if _, _, err := Decode(YAML, []byte(body)); err == nil {
			t.Errorf("%.10s…: no error", body)
		}
	}
}

func TestDecodeObjectNamesTyped(t *testing.T) {
	deployment := Expect{Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), New: func() runtime.Object { return &appsv1.Deployment{} }}
	if tree, _, err := DecodeObject(JSON, []byte(`{"apiVersion":"apps/"}`), deployment); err != nil || object.APIVersion(tree) != "apps/v1" {
		t.Errorf("a group without a version: %v, %v", tree, err)
	}
	for _, body := range []string{`null`, `{}`, `{"kind":"ConfigMap"}`, `{"apiVersion":null,"kind":""}`, `{"apiVersion":"v1"}`} {
		tree, _, err := DecodeObject(JSON, []byte(body), configMap)
		if err != nil || object.APIVersion(tree) != "v1" || object.Kind(tree) != "ConfigMap" {
			t.Errorf("%s: %v, %v", body, tree, err)
		}
	}
}

// A Go type skips a number out of range in an unknown field, but not in a known one.
func TestNumberThatNothingHolds(t *testing.T) {
	tree, problems, err := DecodeObject(JSON, []byte(`{"kind":"ConfigMap","zz":{"y":1e400},"data":{"a":"b"},"data":{"a":"c"}}`), configMap)
	if err != nil || object.Kind(tree) != "ConfigMap" || fmt.Sprint(tree["data"]) != "map[a:c]" || tree["zz"] != nil {
		t.Errorf("%v, %v", tree, err)
	}
	if want := []string{`unknown field "zz"`, `duplicate field "data"`}; !slices.Equal(problems, want) {
		t.Errorf("%q", problems)
	}
	const refused = `ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string`
	if _, _, err = DecodeObject(JSON, []byte(`{"kind":"ConfigMap","data":{"a":1e400}}`), configMap); err == nil || err.Error() != refused {
		t.Error(err)
	}
}

// A number that is too large for a float64 has one error, wherever it is in untyped JSON.
func TestNumberTooLargeInJSON(t *testing.T) {
	x := Expect{Kind: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		New: func() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }}
	for _, value := range []string{`1e400`, `[1e400]`, `{"a":{"b":[1e400]}}`} {
		_, _, err := DecodeObject(JSON, []byte(`{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"default":`+value+`}}}]}}`), x)
		const want = `CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: cannot unmarshal number 1e400 into Go value of type float64`
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}

// With a Go type, unknown fields of CBOR are reported as Kubernetes does: the first one, by its position in its map.
func TestUnknownFieldsInCBOR(t *testing.T) {
	tree, problems, err := DecodeObject(CBOR, []byte("\xa3\x42zz\x01\x44data\xa1\x41a\x41b\x42yy\x01"), configMap)
	if want := []string{"cbor: found unknown field at map element index 0"}; err != nil || !slices.Equal(problems, want) {
		t.Errorf("%q, %v", problems, err)
	}
	if !object.Equal(tree["data"], object.Tree{"a": "b"}) || object.Kind(tree) != "ConfigMap" {
		t.Errorf("decoded %v", tree)
	}
}

// An empty list of managedFields means no managers, and is not lost in the Go type.
func TestNoManagersInCBOR(t *testing.T) {
	for body, want := range map[string]bool{"\xa1\x48metadata\xa1\x4dmanagedFields\x80": true, "\xa1\x48metadata\xa0": false} {
		tree, _, err := DecodeObject(CBOR, []byte(body), configMap)
		if _, got := object.Metadata(tree)["managedFields"]; err != nil || got != want {
			t.Errorf("%q: %v, %v", body, tree, err)
		}
	}
}

// With a Go type, each of several duplicate fields must fit, and duplicate objects are merged.
func TestDuplicatesOfType(t *testing.T) {
	x := Expect{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), New: func() runtime.Object { return &corev1.ConfigMap{} }}
	got, problems, err := DecodeObject(JSON, []byte(`{"kind":"ConfigMap","odd":{"a":1,"a":2},"data":{"a":"1","b":"1"},"data":{"b":"2"}}`), x)
	if err != nil || !object.Equal(got["data"], object.Tree{"a": "1", "b": "2"}) {
		t.Errorf("decoded %v, %v", got, err)
	}
	if want := []string{`unknown field "odd"`, `duplicate field "data"`}; !slices.Equal(problems, want) {
		t.Errorf("problems %q, want %q", problems, want)
	}
	_, _, err = DecodeObject(JSON, []byte(`{"kind":"ConfigMap","data":[],"data":{}}`), x)
	if err == nil || !strings.Contains(err.Error(), "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string") {
		t.Errorf("an earlier duplicate of a wrong type: %v", err)
	}
}

func TestDuplicates(t *testing.T) {
	_, got, err := DecodeObject(JSON, []byte(`{"apiVersion":"codec.test/v1","kind":"Probe","metadata":{"name":"c","name":"c","labels":{"a":"b","a":"c"}},
		"spec":{"a":1,"a":2,"l":[{"x":1,"x":2}],"b":{"c":1,"c":1}},"spec":{"a":3}}`), probe)
	want := []string{`duplicate field "metadata.name"`, `duplicate field "metadata.labels.a"`, `duplicate field "spec.a"`,
		`duplicate field "spec.l[0].x"`, `duplicate field "spec.b.c"`, `duplicate field "spec"`}
	if err != nil || !slices.Equal(got, want) || !slices.Equal(Warnings(got), want) {
		t.Errorf("%q, %v", got, err)
	}
	if got := StrictError(probe.Kind, want[:2]).Error(); got !=
		`Probe in version "v1" cannot be handled as a Probe: strict decoding error: duplicate field "metadata.name", duplicate field "metadata.labels.a"` {
		t.Error(got)
	}
}

func TestDuplicatesInYAML(t *testing.T) {
	tree, got, err := DecodeObject(YAML, []byte("apiVersion: codec.test/v1\nkind: Probe\nmetadata:\n  name: c\n  name: d\nspec:\n  a: 1\n  a: 2\nspec: {}\n"), probe)
	if err != nil || object.Name(tree) != "d" {
		t.Fatal(tree, err)
	}
	if want := []string{"yaml: unmarshal errors:\n  line 5: key \"name\" already set in map\n  line 8: key \"a\" already set in map\n  line 9: key \"spec\" already set in map"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if want := []string{`line 5: key "name" already set in map`, `line 8: key "a" already set in map`, `line 9: key "spec" already set in map`}; !slices.Equal(Warnings(got), want) {
		t.Errorf("%q", Warnings(got))
	}
}

// Unquoted words are read as in YAML 1.1, as kubectl users expect.
func TestDecodeYAML(t *testing.T) {
	tree, _, err := Decode(YAML, []byte("a: 010\nb: 1.0\nyes: yes\nd: 2020-01-01\ne: &x [1]\nf: *x\n---\nsecond: document\n"))
	if got := string(object.AppendJSON(nil, tree)); err != nil || got != `{"a":8,"b":1,"d":"2020-01-01","e":[1],"f":[1],"true":true}` {
		t.Errorf("%s, %v", got, err)
	}
}
