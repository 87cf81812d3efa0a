package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// The number alone determines a payload: the same number gives the same bytes.
func TestSameNumberSameBytes(t *testing.T) {
	corpus, err := ReadCorpus()
	if err != nil {
		t.Fatal(err)
	}
	k := Kind{Group: Group}
	makers := map[string]func(n int) []byte{
		"widget":     func(n int) []byte { return k.Widget("ns", n) },
		"applied":    func(n int) []byte { return k.Applied("ns", 7, n) },
		"patch":      Patch,
		"definition": func(n int) []byte { return corpus.Definition(n).Body },
		"first":      func(n int) []byte { return corpus.Definition(n).First },
	}
	for _, b := range Builtins() {
		makers[b.Name] = func(n int) []byte { return b.JSON("ns", n, n) }
		makers[b.Name+" strategic patch"], makers[b.Name+" merge patch"] = b.StrategicPatch, b.MergePatch
	}
	for name, make := range makers {
		t.Run(name, func(t *testing.T) {
			for n := range 50 {
				one, two := make(n), make(n)
				if !bytes.Equal(one, two) {
					t.Fatalf("number %d is not always the same:\n%s\n%s", n, one, two)
				}
				if !json.Valid(one) {
					t.Fatalf("number %d is no JSON: %s", n, one)
				}
				if bytes.Equal(one, make(n+1)) {
					t.Fatalf("numbers %d and %d are the same", n, n+1)
				}
			}
		})
	}
}

// The mean size of definitions is that of a provider.
func TestDefinitionsAreOfTheUsualSize(t *testing.T) {
	corpus, err := ReadCorpus()
	if err != nil {
		t.Fatal(err)
	}
	n, size := len(corpus.all), 0
	for i := range n {
		size += len(corpus.Definition(i).Body)
	}
	if mean := size / n; n < 50 || mean < 20_000 || mean > 40_000 {
		t.Errorf("%d definitions with a mean of %d bytes", n, mean)
	}
}

// Protobuf and JSON encode the same object.
func TestProtobufIsTheSameObject(t *testing.T) {
	for _, b := range Builtins() {
		var envelope runtime.Unknown
		data, ok := bytes.CutPrefix(b.Protobuf("ns", 3, 4), []byte("k8s\x00"))
		if err := envelope.Unmarshal(data); err != nil || !ok {
			t.Fatal(ok, err)
		}
		o := reflect.New(reflect.TypeOf(b.object("ns", 0, 0)).Elem()).Interface()
		if err := o.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw); err != nil {
			t.Fatal(err)
		}
		want := string(b.JSON("ns", 3, 4))
		// The envelope has the kind instead.
		for _, field := range []string{fmt.Sprintf(`"apiVersion":%q,`, envelope.APIVersion), fmt.Sprintf(`"kind":%q,`, envelope.Kind)} {
			want = strings.Replace(want, field, "", 1)
		}
		if got := string(encode(o)); got != want {
			t.Errorf("protobuf has\n%s\nJSON\n%s", got, want)
		}
	}
}
