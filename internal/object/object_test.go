package object

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// AppendJSON writes the same as encoding/json, except for minus zero: it is decoded as the
// integer 0, so it is written as 0.
func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{
		`null`, `{}`, `[]`, `{"b":1,"a":[true,false,null,"x"]}`, `"<&>\u2028\ud800\t\u0001\""`,
		`[1e-7,1e21,1e20,-0.5,123456789012,1.5e-9,1e100]`, `{"a":-0.0,"b":[-0e5,0.0,-1e-400]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if json.Unmarshal(data, &v) != nil {
			t.Skip()
		}
		want, err := json.Marshal(unsigned(v))
		if err != nil {
			t.Skip()
		}
		if got := AppendJSON(nil, v); !bytes.Equal(got, want) {
			t.Errorf("AppendJSON(%s)\n got %s\nwant %s", data, got, want)
		}
	})
}

// unsigned replaces minus zeros in v.
func unsigned(v any) any {
	switch v := v.(type) {
	case float64:
		return v + 0
	case []any:
		for i := range v {
			v[i] = unsigned(v[i])
		}
	case Tree:
		for k := range v {
			v[k] = unsigned(v[k])
		}
	}
	return v
}

func TestScan(t *testing.T) {
	for _, tt := range []struct {
		name, stored, want string
	}{
		{"sorted",
			`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","uid":"u"},"spec":{"a":"}"}}`,
			`{"apiVersion":"g/v2","kind":"K","metadata":{"name":"n","resourceVersion":"7","uid":"u"},"spec":{"a":"}"}}`},
		{"nothing sorts after",
			`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n"}}`,
			`{"apiVersion":"g/v2","kind":"K","metadata":{"name":"n","resourceVersion":"7"}}`},
		{"empty metadata",
			`{"apiVersion":"g/v1","metadata":{}}`,
			`{"apiVersion":"g/v2","metadata":{"resourceVersion":"7"}}`},
		{"a Go struct's order",
			`{"kind":"K","metadata":{"uid":"u","name":"n"},"apiVersion":"g/v1"}` + "\n",
			`{"kind":"K","metadata":{"resourceVersion":"7","uid":"u","name":"n"},"apiVersion":"g/v2"}` + "\n"},
		{"a revision that was stored",
			`{"apiVersion":"g/v1","metadata":{"name":"n","resourceVersion":"3","uid":"u"}}`,
			`{"apiVersion":"g/v2","metadata":{"name":"n","resourceVersion":"7","uid":"u"}}`},
		{"white space",
			"{ \"apiVersion\" : \"g/v1\" , \"metadata\" : { \"name\" : \"n\" } }",
			"{ \"apiVersion\" : \"g/v2\" , \"metadata\" : { \"name\" : \"n\" ,\"resourceVersion\":\"7\"} }"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := Scan([]byte(tt.stored), 7)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(e.Append(nil, "g/v2")); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
			if e.APIVersion() != "g/v1" {
				t.Errorf("apiVersion %q", e.APIVersion())
			}
			if !json.Valid(e.Append(nil, "")) {
				t.Errorf("not JSON: %s", e.Append(nil, ""))
			}
		})
	}
}

func TestScanHeader(t *testing.T) {
	e, err := Scan([]byte(`{"apiVersion":"v1","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`+
		`"labels":{"app":"web","\u0074ier":"a\"b"},"name":"n","namespace":"ns","uid":"u-1"}}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != "n" || e.Namespace != "ns" || e.UID != "u-1" || !e.Deleting {
		t.Errorf("header %+v", e)
	}
	for finalizers, want := range map[string]bool{`null`: false, `[]`: false, `["a/b"]`: true} {
		e, err := Scan([]byte(`{"metadata":{"finalizers":`+finalizers+`,"name":"n"}}`), 1)
		if err != nil || e.Held != want {
			t.Errorf("finalizers %s: held is %v, %v", finalizers, e.Held, err)
		}
	}
	if v, ok := e.Labels.Lookup("tier"); !ok || v != `a"b` || e.Labels.Get("app") != "web" || e.Labels.Has("x") {
		t.Errorf("labels %v", e.Labels)
	}
}

// Damaged bytes are an error, never a panic and never an object.
func TestScanRefuses(t *testing.T) {
	for _, s := range []string{
		``, `{`, `null`, `[]`, `{"metadata":{}`, `{"metadata":[]}`, `{"apiVersion":"v1"}`, `{"metadata":{"name":1}}`,
		`{"metadata":{}}x`, `{"metadata":{"labels":[]}}`, "k8s\x00\n\x0f", `{"metadata":{"name":"\`, `{"metadata":{"a":]}}`,
	} {
		if e, err := Scan([]byte(s), 1); err == nil {
			t.Errorf("Scan(%q) = %+v, want an error", s, e)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","metadata":{"labels":{"a":"b"},"name":"n","uid":"u"},"spec":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Scan(data, rand.Int64())
		if err != nil || !json.Valid(data) {
			return
		}
		if out := e.Append(nil, "g/v9"); !json.Valid(out) {
			t.Errorf("%s became %s", data, out)
		}
		if out := e.AppendTyped(nil, "g/v9"); !json.Valid(out) {
			t.Errorf("%s became %s", data, out)
		}
		if out := e.AppendUntyped(nil); !json.Valid(out) {
			t.Errorf("%s became %s", data, out)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	data := AppendJSON(nil, Tree{"apiVersion": "v1", "kind": "K", "metadata": Tree{"name": "n", "namespace": "d", "uid": "x",
		"labels": Tree{"a": "b", "c": "d"}}, "spec": Tree{"text": string(bytes.Repeat([]byte("x"), 1500))}})
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Scan(data, 1); err != nil {
			b.Fatal(err)
		}
	}
}
