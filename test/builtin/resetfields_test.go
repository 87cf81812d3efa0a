package builtin

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
)

// The writer of an object owns the fields that are not reset, the same ones as upstream: on the object
// itself, and on each subresource.
func TestResetFields(t *testing.T) {
	kinds, server, compared := Kinds(), NewServer(t, nil), 0
	corpus, err := ReadCorpus(kinds)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		objects, err := k.Fuzzed(20, 1)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, corpus[k.ID()]...)
		for _, sub := range k.updates() {
			if !server.Serves(k, sub) || sub == "scale" {
				continue
			}
			differences := map[string]bool{}
			for _, o := range objects {
				compared += k.compareOwned(t, server, sub, o, differences)
			}
			for _, d := range slices.Sorted(maps.Keys(differences)) {
				t.Errorf("%s %s: %s", k.ID(), sub, d)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d fields compared", compared)
	}
}

// compareOwned compares the fields that the writer of an object owns, and returns their number.
func (k *Kind) compareOwned(t *testing.T, s *Server, subresource string, o Object, differences map[string]bool) int {
	t.Helper()
	o = maps.Clone(o)
	o["apiVersion"], o["kind"] = k.gvk().GroupVersion().String(), k.Kind
	o["metadata"] = Object{
		"labels": Object{"a": "b"}, "annotations": Object{"a": "b"}, "generateName": "n-", "finalizers": []any{"a.b/c"},
		"ownerReferences": []any{Object{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}},
	}
	d := s.set.Lookup(k.Group, k.Plural)
	v := d.Version(k.Version)
	all := owned(t, apply.FieldsOf(d, &resource.Version{Name: v.Name, Schema: v.Schema, New: v.New}, ""), v, o)
	ours := owned(t, apply.FieldsOf(d, v, subresource), v, o)
	upstream := k.notReset(subresource, all)
	if k.Plural == "pods" && subresource == "resize" {
		// The strategy resets the resources of the whole pod, but kube-apiserver does not: the client
		// that resizes a pod owns them. The cases of test/compare/admission cover it.
		ours = ours.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "resources")))
	}
	for what, set := range map[string]*fieldpath.Set{"reset": upstream.Difference(ours), "not reset": ours.Difference(upstream)} {
		set.Iterate(func(p fieldpath.Path) { differences[p.String()+" is "+what] = true })
	}
	return all.Size()
}

// notReset removes from a set the fields that upstream resets in a write.
func (k *Kind) notReset(subresource string, all *fieldpath.Set) *fieldpath.Set {
	var strategy any = k.Strategy
	if subresource != "" {
		strategy = k.Subresources[subresource]
	}
	version := fieldpath.APIVersion(k.gvk().GroupVersion().String())
	if s, ok := strategy.(rest.ResetFieldsFilterStrategy); ok {
		if f := s.GetResetFieldsFilter()[version]; f != nil {
			return f.Filter(all)
		}
	}
	if s, ok := strategy.(rest.ResetFieldsStrategy); ok {
		if reset := s.GetResetFields()[version]; reset != nil {
			return fieldpath.NewExcludeSetFilter(reset).Filter(all)
		}
	}
	return all
}

// owned returns the fields that the writer of a new object owns.
func owned(t *testing.T, fields *apply.Fields, v *resource.Version, o Object) *fieldpath.Set {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var read Object
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &read); err != nil {
		t.Fatal(err)
	}
	if read, _, err = v.Schema.Complete(read); err != nil {
		t.Fatal(err)
	}
	out := &fieldpath.Set{}
	list, _ := fields.Update(t.Context(), nil, read, "writer")["metadata"].(Object)["managedFields"].([]any)
	for _, e := range list {
		data, err := json.Marshal(e.(Object)["fieldsV1"])
		if err != nil {
			t.Fatal(err)
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		out = out.Union(set)
	}
	return out
}
