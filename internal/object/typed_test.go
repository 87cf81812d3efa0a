package object

import (
	"bytes"
	"testing"
)

// Objects and list items begin as Kubernetes writes a Go type, whatever the order of the stored
// bytes.
func TestAppendTyped(t *testing.T) {
	const (
		metadata = `"metadata":{"name":"n","resourceVersion":"7"}`
		item     = `{` + metadata
		front    = `{"kind":"K","apiVersion":"g/v2",` + metadata
	)
	for stored, rest := range map[string]string{
		`{"a":1,"apiVersion":"g/v1","kind":"K","metadata":{"name":"n"},"z":{}}`:                       `,"a":1,"z":{}}`,
		`{"kind":"K","apiVersion":"g/v1","a":1,"metadata":{"name":"n"},"z":{}}`:                       `,"a":1,"z":{}}`,
		`{"kind":"K","a":1,"metadata":{"name":"n"},"apiVersion":"g/v1","z":{}}`:                       `,"a":1,"z":{}}`,
		`{"a":1,"metadata":{"name":"n","resourceVersion":"3"},"apiVersion":"g/v1","kind":"K","z":{}}`: `,"a":1,"z":{}}`,
		`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n"}}` + "\n":                             "}\n",
		`{"metadata":{"name":"n"},"apiVersion":"g/v1","kind":"K"}`:                                    `}`,
		`{"a":1,"apiVersion":"g/v1","b":2,"kind":"K","l":3,"metadata":{"name":"n"}}`:                  `,"a":1,"b":2,"l":3}`,
	} {
		e, err := Scan([]byte(stored), 7)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(e.AppendTyped(nil, "g/v2")), front+rest; got != want {
			t.Errorf("%s\nbecame %s\n  want %s", stored, got, want)
		}
		if got, want := string(e.AppendUntyped(nil)), item+rest; got != want {
			t.Errorf("as an item, %s\nbecame %s\n  want %s", stored, got, want)
		}
	}
	for _, unusual := range []string{
		`{"apiVersion": "g/v1", "kind": "K", "metadata":{"name":"n"}}`,
		`{"apiVersion":"g/v1","kind":"K", "metadata":{"name":"n"}}`,
		` {"apiVersion":"g/v1","kind":"K","metadata":{"name":"n"}}`,
		`{"kind":"K","metadata":{"name":"n"}}`,
	} {
		e, err := Scan([]byte(unusual), 7)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := e.AppendTyped(nil, "g/v2"), e.Append(nil, "g/v2"); !bytes.Equal(got, want) {
			t.Errorf("%s\nbecame %s", unusual, got)
		}
		if got, want := e.AppendUntyped(nil), e.Append(nil, ""); !bytes.Equal(got, want) {
			t.Errorf("as an item, %s\nbecame %s", unusual, got)
		}
	}
}

func TestAppendTypedJSON(t *testing.T) {
	for want, in := range map[string]Tree{
		`{}`: {},
		`{"kind":"K","apiVersion":"v1","metadata":{"name":"n"},"a":1,"z":{"kind":""}}`: {"apiVersion": "v1", "kind": "K",
			"metadata": Tree{"name": "n"}, "z": Tree{"kind": ""}, "a": int64(1)},
		`{"kind":"K","status":null}`: {"status": nil, "kind": "K"},
	} {
		if got := string(AppendTypedJSON(nil, in)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	data := AppendJSON(nil, Tree{"apiVersion": "v1", "kind": "K", "data": Tree{"text": string(bytes.Repeat([]byte("x"), 1500))},
		"metadata": Tree{"name": "n", "namespace": "d", "uid": "x", "labels": Tree{"a": "b", "c": "d"}}})
	e, err := Scan(data, 1)
	if err != nil {
		b.Fatal(err)
	}
	for name, appendTo := range map[string]func(dst []byte) []byte{
		"stored": func(dst []byte) []byte { return e.Append(dst, "v1") },
		"typed":  func(dst []byte) []byte { return e.AppendTyped(dst, "v1") },
		"item":   e.AppendUntyped,
	} {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				dst = appendTo(dst[:0])
			}
		})
	}
}
