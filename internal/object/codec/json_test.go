package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// reference decodes with sigs.k8s.io/json.
func reference(data []byte) (t object.Tree, duplicates []string, err error) {
	strict, err := kjson.UnmarshalStrict(data, &t, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range strict {
		duplicates = append(duplicates, e.Error())
	}
	return t, duplicates, nil
}

// documents are seeds of the fuzz test, and test cases.
var documents = []string{
	``, ` `, `null`, ` null `, `nul`, `true`, `5`, `"x"`, `[]`, `{`, `{}`, " {\t} \r\n", `{}x`, `{} {}`, "{}\x00",
	`{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{,}`, `{a:1}`, `{'a':1}`, `{"a":1 "b":2}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[}`,
	`{"a":tru}`, `{"a":trueb}`, `{"a":false,"b":null,"c":true}`, `{"a":TRUE}`, `{"a":NaN}`, `{"a":Infinity}`,
	`{"a":0}`, `{"a":-0}`, `{"a":-}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":1.0}`, `{"a":-0.0}`, `{"a":1e3}`, `{"a":1E+3}`, `{"a":1e-3}`, `{"a":1e}`,
	`{"a":1e400}`, `{"a":-1e400}`, `{"a":1e-400}`, `{"a":9223372036854775807}`, `{"a":9223372036854775808}`, `{"a":-9223372036854775808}`, `{"a":-9223372036854775809}`, `{"a":123456789012345678901234567890}`,
	`{"a":""}`, `{"":""}`, `{"a":"\""}`, `{"a":"\\\/\b\f\n\r\t"}`, `{"a":"\'"}`, `{"a":"\x"}`, `{"a":"\`, `{"a":"\u`, `{"a":"\u12`, `{"a":"\u12g4"}`, `{"a":"\u+123"}`,
	`{"a":"\u00e9\u4e2d\ud83d\ude00"}`, `{"a":"\ud800"}`, `{"a":"\ud800\ud800"}`, `{"a":"\ud800\u0041"}`, `{"a":"\udc00x"}`, `{"a":"\ud800\n"}`, `{"\u0061":1,"a":2}`,
	"{\"a\":\"\xff\xfe\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"\xff\":1,\"\xfe\":2}", "{\"a\":\"é中😀\u2028\"}", "{\"a\":\"\t\"}", "{\"a\":\"\x00\"}", "{\"a\":\"\x7f\"}", "{\"a\":\"\xc3\n\"}",
	`{"a":1,"a":2}`, `{"a":{"b":1,"b":{"c":1}}}`, `{"a":[{"b":1},{"b":1,"b":1}],"a":3}`, `{"a":{"x":1},"a":{"y":2}}`, `{"a.b":{"c":1,"c":1}}`,
	"\xef\xbb\xbf{}", `{"a":[[],{},[{}],[[[]]]]}`, `{"a": [ 1 , "b" , null ] , "c" : { } }`,
}

// same compares the decoder with the reference.
func same(t *testing.T, data []byte) {
	t.Helper()
	got, gotDuplicates, gotErr := decodeJSON(data)
	want, wantDuplicates, wantErr := reference(data)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Errorf("%.200q: error %v, want %v", data, gotErr, wantErr)
	}
	if !reflect.DeepEqual(got, want) || !bitwise(got, want) {
		t.Errorf("%.200q:\n got %#v\nwant %#v", data, got, want)
	}
	if !reflect.DeepEqual(gotDuplicates, wantDuplicates) {
		t.Errorf("%.200q: duplicates %v, want %v", data, gotDuplicates, wantDuplicates)
	}
}

// bitwise reports whether the floats of two equal trees also have equal signs.
func bitwise(a, b any) bool {
	switch a := a.(type) {
	case float64:
		return math.Signbit(a) == math.Signbit(b.(float64))
	case object.Tree:
		for k := range a {
			if !bitwise(a[k], b.(object.Tree)[k]) {
				return false
			}
		}
	case []any:
		for i := range a {
			if !bitwise(a[i], b.([]any)[i]) {
				return false
			}
		}
	}
	return true
}

func TestDecodeIsTheReference(t *testing.T) {
	for _, d := range documents {
		same(t, []byte(d))
	}
	for _, depth := range []int{object.MaxDepth - 1, object.MaxDepth, object.MaxDepth + 1} {
		same(t, []byte(`{"a":`+strings.Repeat("[", depth-1)+strings.Repeat("]", depth-1)+`}`))
		same(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
	same(t, []byte(sample))
}

// A well-formed document is decoded without the library.
func TestDecodeIsFastForTheUsual(t *testing.T) {
	p := parser{s: sample}
	if _, ok := p.document(); !ok {
		t.Error("the parser gave up on a usual object")
	}
}

func FuzzDecode(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, data []byte) {
		same(t, data)
		// The parser accepts every document that the reference accepts, except with duplicates.
		if tree, duplicates, err := reference(data); err == nil && tree != nil && len(duplicates) == 0 {
			p := parser{s: string(data)}
			if _, ok := p.document(); !ok {
				t.Errorf("the parser gave up on %q", data)
			}
		}
	})
}

// sample is an object of 1.7 kB, typical for kubectl apply.
var sample = func() string {
	applied := `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"annotations":{},"name":"sample","namespace":"default"},"spec":{"cronSpec":"* * * * */5","image":"my-awesome-cron-image"}}` + "\n"
	t := object.Tree{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab",
		"metadata": object.Tree{
			"name": "sample", "namespace": "default", "uid": "0e8b1c3f-6b1e-4c5e-9d43-6a8f8e1f0f5d", "generation": int64(3),
			"creationTimestamp": "2026-01-02T03:04:05Z",
			"labels":            object.Tree{"app.kubernetes.io/name": "sample", "app.kubernetes.io/part-of": "a-larger-whole", "tier": "backend"},
			"annotations":       object.Tree{"kubectl.kubernetes.io/last-applied-configuration": applied},
			"finalizers":        []any{"example.com/cleanup"},
		},
		"spec": object.Tree{
			"cronSpec": "* * * * */5", "image": "my-awesome-cron-image", "replicas": int64(3), "ratio": 0.75, "suspend": false,
			"env": []any{
				object.Tree{"name": "LOG_LEVEL", "value": "info"}, object.Tree{"name": "ENDPOINT", "value": "https://example.com/a/b?c=d&e=f"},
				object.Tree{"name": "TOKEN_FILE", "value": "/var/run/secrets/token"}, object.Tree{"name": "REGION", "value": "eu-central-1"},
			},
			"ports":       []any{object.Tree{"name": "http", "port": int64(8080)}, object.Tree{"name": "metrics", "port": int64(9090)}},
			"description": strings.Repeat("A sentence that says what this object is for. ", 7),
		},
		"status": object.Tree{
			"replicas": int64(3), "observedGeneration": int64(3),
			"conditions": []any{
				object.Tree{"type": "Ready", "status": "True", "reason": "AllGood", "message": "all replicas are ready", "lastTransitionTime": "2026-01-02T03:05:00Z", "observedGeneration": int64(3)},
			},
		},
	}
	return string(object.AppendJSON(nil, t))
}()

func BenchmarkDecode(b *testing.B) {
	data := []byte(sample)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := decodeJSON(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reference", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := reference(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var v map[string]any
			if err := json.Unmarshal(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
