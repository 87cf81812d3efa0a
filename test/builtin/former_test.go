package builtin

import (
	"encoding/json"
	"errors"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	apitesting "k8s.io/kubernetes/pkg/api/testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
)

// A form is a version in which etcd may have objects of a kind.
type form struct {
	gvk    schema.GroupVersionKind
	of     *resource.Definition
	scheme *runtime.Scheme
}

// formerly returns the versions that kube-apiserver reads from etcd and does not serve.
func formerly() []form {
	var out []form
	served := map[schema.GroupVersionKind]bool{}
	for _, d := range builtin.Stored(nil) {
		for _, v := range d.Versions {
			served[d.GroupVersionKind(v.Name)] = true
		}
	}
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, aggregator.Scheme} {
		for _, d := range builtin.Definitions() {
			group := d.Group
			if group == "events.k8s.io" {
				continue // they are stored as events of the core group
			}
			memory := schema.GroupKind{Group: group, Kind: d.Kind}.WithVersion(runtime.APIVersionInternal)
			for gvk := range scheme.AllKnownTypes() {
				if gvk.Kind != d.Kind || gvk.Version == runtime.APIVersionInternal || served[gvk] {
					continue
				}
				obj, err := scheme.New(gvk)
				if err != nil || !scheme.Recognizes(memory) {
					continue
				}
				if into, err := scheme.New(memory); err != nil || scheme.Convert(obj, into, nil) != nil {
					continue
				}
				if len(d.ListedVerbs()) > 1 { // reviews are not stored
					out = append(out, form{gvk, d, scheme})
				}
			}
		}
	}
	return out
}

// TestFormerVersions puts objects into etcd as old servers did, in removed versions, as protobuf and
// as JSON. kube-apiserver reads the same object from our form as from the old one.
func TestFormerVersions(t *testing.T) {
	all := formerly()
	if len(all) < 50 {
		t.Fatalf("there are only %d versions", len(all))
	}
	for _, f := range all {
		t.Run(f.gvk.GroupVersion().String()+" "+f.gvk.Kind, func(t *testing.T) {
			codecs := serializer.NewCodecFactory(f.scheme)
			memory := schema.GroupVersion{Group: f.of.Group, Version: runtime.APIVersionInternal}
			compared := 0
			for seed := range int64(25) {
				filler := fuzzer.FuzzerFor(apitesting.FuzzerFuncs, rand.NewSource(seed), codecs).NilChance(float64(seed%5) / 5)
				obj, err := f.scheme.New(f.gvk)
				if err != nil {
					t.Fatal(err)
				}
				filler.Fill(obj)
				if seed%3 == 0 { // as created from all fields
					internal, _ := f.scheme.New(memory.WithKind(f.gvk.Kind))
					filler.Fill(internal)
					if f.scheme.Convert(internal, obj, nil) != nil {
						continue
					}
				}
				obj.GetObjectKind().SetGroupVersionKind(f.gvk)
				for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
					stored, err := runtime.Encode(info(codecs, media), obj)
					if err != nil {
						continue
					}
					if f.compare(t, codecs, memory, stored) {
						compared++
					}
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			if compared < 10 {
				t.Errorf("only %d objects could be compared", compared)
			}
		})
	}
}

func info(codecs serializer.CodecFactory, media string) runtime.Serializer {
	found, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	return found.Serializer
}

func (f form) compare(t *testing.T, codecs serializer.CodecFactory, memory schema.GroupVersion, stored []byte) bool {
	t.Helper()
	into := runtime.NewCoercingMultiGroupVersioner(memory, schema.GroupKind{Group: f.of.Group}, schema.GroupKind{Group: f.gvk.Group})
	codec := codecs.DecoderToVersion(codecs.UniversalDeserializer(), into)
	theirs, err := runtime.Decode(codec, stored)
	if err != nil {
		return false // it cannot have been stored
	}
	read := builtin.StoredJSON(builtin.Stored(nil), f.of.StoragePrefix+"name", stored)
	var is runtime.TypeMeta
	if err := json.Unmarshal(read, &is); err != nil || is.APIVersion != f.of.APIVersion(f.of.StorageVersion().Name) {
		t.Fatalf("read as %v: %.200s", is, read)
	}
	// Defaults that the old version lacks and the storage version has are applied here.
	encoder := codecs.EncoderForVersion(info(codecs, runtime.ContentTypeJSON), schema.GroupVersion{Group: f.of.Group, Version: f.of.StorageVersion().Name})
	canonical := func(obj runtime.Object) (map[string]any, error) {
		data, err := runtime.Encode(encoder, obj)
		if err == nil {
			obj, err = runtime.Decode(codec, data)
		}
		if err == nil {
			data, err = runtime.Encode(encoder, obj)
		}
		tree := map[string]any{}
		return tree, errors.Join(err, json.Unmarshal(data, &tree))
	}
	decoded, err := runtime.Decode(codec, read)
	if err != nil {
		t.Fatalf("%v: %s", err, read)
	}
	ours, err := canonical(decoded)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := canonical(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(ours, wanted) {
		t.Errorf("kube-apiserver has, instead:\n%s", cmp.Diff(ours, wanted))
	}
	return true
}
