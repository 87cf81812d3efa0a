package builtin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/protobuf"
	"github.com/anykind/anykind/internal/store/kv"
)

// TestStoredProtobuf stores each object of the corpus. Its protobuf equals that of kube-apiserver's code byte for byte, and
// becomes the same JSON again, so that an update without a change is none.
func TestStoredProtobuf(t *testing.T) {
	s := NewServer(t, nil)
	kinds, _ := chosen(t, s)
	corpus := readCorpus(t)
	stored, types, compared := builtin.Stored(nil), &protobuf.Types{}, 0
	for _, k := range kinds {
		for _, o := range corpus[k.ID()] {
			of := s.of(k)
			body, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			var out Outcome
			if w := ask(of.handler, http.MethodPost, k.path("", "")+"?fieldValidation=Ignore", "", body, &out); w == nil || w.Code != http.StatusCreated {
				continue
			}
			namespace, _ := o["metadata"].(Object)["namespace"].(string)
			d := of.set.Lookup(k.Group, k.Plural)
			key := d.Key(namespace, nameOf(o))
			r, err := of.backend.Get(t.Context(), key, kv.Latest)
			if err != nil {
				continue // it is never stored
			}
			ours, ok := builtin.StoredProtobuf(types, stored, key, r.Value)
			if !ok {
				if k.Group != "apiregistration.k8s.io" {
					t.Errorf("%s has no protobuf", key)
				}
				continue
			}
			obj, _, err := k.codecs.UniversalDeserializer().Decode(r.Value, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			theirs, err := runtime.Encode(k.serializer(runtime.ContentTypeProtobuf), obj)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			if !bytes.Equal(ours, theirs) {
				t.Errorf("%s: kube-apiserver stores, instead:\n%s", key, cmp.Diff(ours, theirs))
			}
			tree, _, err := codec.Decode(codec.JSON, r.Value)
			if err != nil {
				t.Fatal(err)
			}
			d.StorageVersion().Schema.Default(tree) // an object that was written in another version may lack them
			want := object.AppendJSON(nil, tree)
			if again := builtin.StoredJSON(stored, key, ours); !bytes.Equal(again, want) {
				t.Errorf("%s is read with a difference:\n%s", key, cmp.Diff(string(want), string(again)))
			}
			compared++
		}
	}
	if compared < 150 && *kindsFlag == "" {
		t.Errorf("only %d objects were compared", compared)
	}
	t.Log(compared, "objects")
}
