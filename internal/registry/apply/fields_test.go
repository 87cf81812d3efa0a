package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/fieldset"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

// Random objects of random schemas, written in any order by appliers and updaters, have the same
// managers as with the field manager of Kubernetes: equal objects, byte for byte, and equal errors.
func TestFieldsAreThoseOfTheLibrary(t *testing.T) {
	schemas := 40
	if testing.Short() {
		schemas = 10
	}
	taken := 0
	for seed := range uint64(schemas) {
		synctest.Test(t, func(t *testing.T) { // a stopped clock
			r := &random{rand.New(rand.NewPCG(seed, 1))}
			k := r.kind(t)
			for range 4 {
				taken += r.history(t, k)
			}
		})
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
	if taken < schemas {
		t.Errorf("only %d applies were not left to the library", taken)
	}
}

// random generates schemas, objects and writes.
type random struct{ *rand.Rand }

func (r *random) one(chance int) bool { return r.IntN(chance) == 0 }

// A kind has two versions of one schema, or a second version with an empty schema.
type kind struct {
	*resource.Definition
	roots map[*resource.Version]*apiextensionsv1.JSONSchemaProps
}

func (r *random) kind(t *testing.T) kind {
	t.Helper()
	d := resource.Definition{Group: "example.com", Plural: "things", Kind: "Thing"}
	k := kind{roots: map[*resource.Version]*apiextensionsv1.JSONSchemaProps{}}
	root := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": r.schema(3), "status": r.schema(1), "data": r.schema(2),
	}}
	other := root
	if r.one(3) {
		other = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	reset := r.one(2)
	fields := []string{"status", "metadata"}
	if r.one(2) {
		fields = []string{"status", "spec.*.*", "metadata.labels"}
	}
	for name, props := range map[string]*apiextensionsv1.JSONSchemaProps{"v1": root, "v2": other} {
		s, err := schema.Parse(props, model.Kind{Group: d.Group, Version: name, Kind: d.Kind, ListKind: "ThingList", Plural: d.Plural})
		if err != nil {
			t.Fatal(err)
		}
		v := &resource.Version{Name: name, Served: true, Storage: name == "v1", Schema: s}
		if reset {
			v.ResetFields = []string{"status"}
			v.Subresources = []resource.Subresource{{Name: "status", Fields: fields}}
		}
		d.Versions = append(d.Versions, v)
		k.roots[v] = root
	}
	k.Definition = resource.New(d)
	return k
}

func (r *random) schema(depth int) apiextensionsv1.JSONSchemaProps {
	var p apiextensionsv1.JSONSchemaProps
	p.Nullable = r.one(4)
	form := r.IntN(10)
	if depth == 0 {
		form = r.IntN(4)
	}
	switch form {
	case 0, 1:
		p.Type = []string{"string", "integer", "number", "boolean"}[r.IntN(4)]
	case 2:
		p.XIntOrString = true
	case 3:
		p.Type, p.XPreserveUnknownFields = "object", new(true)
	case 4:
		p.XPreserveUnknownFields = new(true)
	case 5, 6:
		r.list(&p, depth)
	case 7:
		of := r.schema(depth - 1)
		p.Type, p.AdditionalProperties = "object", &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &of}
	default:
		p.Type, p.Properties = "object", map[string]apiextensionsv1.JSONSchemaProps{}
		for i := range 1 + r.IntN(4) {
			p.Properties[string(rune('a'+i))] = r.schema(depth - 1)
		}
		if r.one(6) {
			p.XPreserveUnknownFields = new(true)
		}
	}
	if p.Type == "object" && r.one(4) {
		p.XMapType = new([]string{"atomic", "granular"}[r.IntN(2)])
	}
	return p
}

func (r *random) list(p *apiextensionsv1.JSONSchemaProps, depth int) {
	p.Type = "array"
	of := r.schema(depth - 1)
	switch r.IntN(4) {
	case 0:
		p.XListType = new("set")
		of = apiextensionsv1.JSONSchemaProps{Type: []string{"string", "integer", "number", "boolean"}[r.IntN(4)]}
	case 1, 2:
		p.XListType, p.XListMapKeys = new("map"), []string{"port", "name"}[:1+r.IntN(2)]
		of = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name": {Type: "string"}, "port": {Type: "integer"}, "more": of,
		}}
		if r.one(2) {
			port := of.Properties["port"]
			port.Default = &apiextensionsv1.JSON{Raw: []byte("80")}
			of.Properties["port"] = port
		}
	}
	p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}
}

// value returns a value, nearly always valid for a schema. Few values differ.
func (r *random) value(p *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case r.one(60):
		return []any{nil, "odd", int64(1), []any{}, object.Tree{}, object.Tree{"odd": int64(1)}}[r.IntN(6)]
	case p.Nullable && r.one(4):
		return nil
	}
	switch p.Type {
	case "string":
		return []string{"a", "b", "c", `"<&\`, "é", ""}[r.IntN(6)]
	case "integer":
		return int64(r.IntN(4))
	case "number":
		return []any{int64(1), 1.5, 2.0, -1e30}[r.IntN(4)]
	case "boolean":
		return r.one(2)
	case "array":
		list := []any{}
		for range []int{0, 1, 2, 3, 4, 12}[r.IntN(6)] {
			list = append(list, r.value(p.Items.Schema))
		}
		return r.distinct(p, list)
	case "object":
		t := object.Tree{}
		for name := range p.Properties {
			if of := p.Properties[name]; !r.one(3) {
				t[name] = r.value(&of)
			}
		}
		if a := p.AdditionalProperties; a != nil {
			for i := range r.IntN(4) {
				t[[]string{"x", "y/z", "k:{}", "."}[i]] = r.value(a.Schema)
			}
		}
		if p.XPreserveUnknownFields != nil && r.one(2) {
			t["any"] = r.any(2)
		}
		return t
	}
	if p.XIntOrString {
		return []any{int64(1), "1"}[r.IntN(2)]
	}
	return r.any(2)
}

// distinct removes duplicate elements, nearly always.
func (r *random) distinct(p *apiextensionsv1.JSONSchemaProps, list []any) []any {
	if p.XListType == nil || r.one(12) {
		return list
	}
	seen := map[string]bool{}
	out := []any{}
	for _, v := range list {
		key := fmt.Sprint(v)
		if t, ok := v.(object.Tree); ok {
			key = ""
			for _, name := range p.XListMapKeys {
				e, ok := t[name]
				if def := p.Items.Schema.Properties[name].Default; !ok && def != nil {
					e = string(def.Raw)
				}
				key += fmt.Sprint(e, "/")
			}
		}
		if !seen[key] {
			out = append(out, v)
		}
		seen[key] = true
	}
	return out
}

func (r *random) any(depth int) any {
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		return []any{r.any(depth - 1), r.any(depth - 1)}
	case n < 3 && depth > 0:
		t := object.Tree{}
		for i := range r.IntN(3) {
			t[string(rune('p'+i))] = r.any(depth - 1)
		}
		return t
	default:
		return []any{nil, true, int64(2), 2.0, "s", ""}[r.IntN(6)]
	}
}

// object returns an object with some of the fields of its kind.
func (r *random) object(k kind, v *resource.Version) object.Tree {
	t, ok := r.value(k.roots[v]).(object.Tree)
	if !ok {
		t = object.Tree{}
	}
	metadata := object.Tree{"name": "n"}
	if r.one(2) {
		metadata["labels"] = object.Tree{[]string{"a", "b"}[r.IntN(2)]: []string{"1", "2"}[r.IntN(2)]}
	}
	if r.one(3) {
		metadata["finalizers"] = []any{"x/" + []string{"a", "b"}[r.IntN(2)], "x/c"}
	}
	if r.one(4) {
		metadata["ownerReferences"] = []any{object.Tree{"uid": "u", "name": "o", "kind": "K", "apiVersion": "v1"}}
	}
	if r.one(10) {
		metadata["annotations"] = object.Tree{lastApplied: `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"labels":{"a":"1"}}}`}
	}
	t["apiVersion"], t["kind"], t["metadata"] = k.APIVersion(v.Name), k.Kind, metadata
	return t
}

// changed returns t with some fields of other.
func (r *random) changed(t, other object.Tree) object.Tree {
	t = object.CloneTree(t)
	for name, v := range other {
		switch was, isTree := t[name].(object.Tree); {
		case name == "apiVersion" || name == "kind" || r.one(3):
		case isTree && !r.one(6):
			if more, ok := v.(object.Tree); ok {
				t[name] = r.changed(was, more)
			}
		case r.one(5):
			delete(t, name)
		default:
			t[name] = object.Clone(v)
		}
	}
	return t
}

// history writes one object at random, and counts the applies that did not use the library.
func (r *random) history(t *testing.T, k kind) (applied int) {
	var live object.Tree
	length := 8
	if r.one(4) {
		length = 40
	}
	for i := range length {
		v := k.Versions[r.IntN(2)]
		if !r.one(3) {
			v = k.StorageVersion()
		}
		subresource := ""
		if live != nil && len(v.Subresources) > 0 && r.one(3) {
			subresource = "status"
		}
		f := FieldsOf(k.Definition, v, subresource)
		old := object.CloneTree(live)
		if old != nil {
			old["apiVersion"] = k.APIVersion(v.Name)
		}
		manager := []string{"", "kubectl", "a", "b", "c"}[r.IntN(5)]
		if length > 8 && !r.one(4) {
			manager = fmt.Sprint("m", r.IntN(14)) // more than the limit of entries
		}
		var got, want object.Tree
		if r.one(2) {
			sent := r.sent(k, v, old)
			if length > 8 && old != nil && !r.one(4) {
				sent = object.CloneTree(old)
				labels, _ := object.Metadata(sent)["labels"].(object.Tree)
				if labels == nil {
					labels = object.Tree{}
				}
				labels[fmt.Sprint("l", i)] = "x"
				object.Metadata(sent)["labels"] = labels
			}
			got, want = f.Update(context.Background(), object.CloneTree(old), object.CloneTree(sent), manager), f.updateByLibrary(old, sent, manager)
		} else {
			wanted, force := r.wanted(k, v, old), r.one(2)
			var errGot, errWant error
			got, errGot = f.Apply(context.Background(), object.CloneTree(old), object.CloneTree(wanted), manager, force)
			want, errWant = f.appliedByLibrary(old, wanted, manager, force)
			if reason(errGot) != reason(errWant) {
				t.Errorf("applying %s to %s by %s: error %v, want %v", text(wanted), text(old), manager, errGot, errWant)
				return 0
			}
			if errGot != nil {
				continue
			}
			if was := old; was != nil {
				if _, ok := f.merge(context.Background(), was, wanted, manager, force); ok {
					applied++
				}
			}
		}
		if text(got) != text(want) {
			t.Errorf("%s of version %s/%s made of\n%s\n%s, want\n%s", manager, v.Name, subresource, text(old), text(got), text(want))
			return 0
		}
		if !typesOf(k.StorageVersion()).Conforms(got, true) && !r.one(4) {
			continue // it would be rejected
		}
		live = got
		object.SetMetaString(live, "uid", "u")
		object.SetMetaString(live, "resourceVersion", fmt.Sprint(r.IntN(100)))
		time.Sleep(time.Duration(r.IntN(2)) * time.Second)
	}
	return applied
}

// sent returns an object for an update of old.
func (r *random) sent(k kind, v *resource.Version, old object.Tree) object.Tree {
	t := r.object(k, v)
	if old == nil {
		return t
	}
	if !r.one(4) {
		t = r.changed(old, t)
	}
	metadata := object.Metadata(t)
	switch r.IntN(12) {
	case 0:
		metadata["managedFields"] = []any{}
	case 1:
		metadata["managedFields"] = []any{object.Tree{}}
	case 2:
		delete(metadata, "managedFields")
	case 3:
		metadata["managedFields"] = []any{r.entry()}
	case 4, 5:
		e := r.entry()
		e["operation"], e["fieldsV1"] = "Apply", deduced.Fields(r.object(k, v)) // by a schema with other fields
		metadata["managedFields"] = []any{e, r.entry()}
	}
	return t
}

// entry is an entry of managedFields as a client might write it, not always readable.
func (r *random) entry() object.Tree {
	e := object.Tree{
		"manager": "client", "operation": []string{"Update", "Apply", "Other"}[r.IntN(3)], "apiVersion": "example.com/v1",
		"fieldsType": "FieldsV1", "time": []string{"2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00"}[r.IntN(2)],
		"fieldsV1": object.Tree{
			"f:spec": []object.Tree{
				{}, {".": object.Tree{}}, {"f:a": object.Tree{}, ".": object.Tree{}}, {"r:x": object.Tree{}},
				{"f:b": object.Tree{`k:{"port":80,"name":"a"}`: object.Tree{}}}, {"f:b": object.Tree{`v:1.0`: object.Tree{}}}, {"x": object.Tree{}},
			}[r.IntN(7)],
		},
	}
	switch r.IntN(10) {
	case 0:
		e["fieldsV1"] = nil
	case 1:
		e["time"] = nil
	case 2:
		e["more"] = "x"
	case 3:
		delete(e, "fieldsType")
	}
	return e
}

var deduced = fieldset.TypeOf(typed.DeducedParseableType.Schema, typed.DeducedParseableType.TypeRef)

// wanted returns an applied configuration.
func (r *random) wanted(k kind, v *resource.Version, old object.Tree) object.Tree {
	t := r.object(k, v)
	if old != nil && r.one(2) {
		t = r.changed(old, t)
		metadata := object.Metadata(t)
		for _, name := range []string{"managedFields", "uid", "resourceVersion"} {
			delete(metadata, name)
		}
	}
	return t
}

// reason returns the reason of a failed apply. The error lists places of a wrong type in the order of
// a map, and not always the same ones.
func reason(err error) string {
	text := fmt.Sprint(err)
	if err == nil || strings.Contains(text, "conflict") {
		return text
	}
	return "refused"
}

func text(t object.Tree) string { return string(object.AppendJSON(nil, t)) }

// updateByLibrary is Update with the field manager of Kubernetes.
func (f *Fields) updateByLibrary(old, t object.Tree, manager string) object.Tree {
	if old == nil {
		old = f.empty
	}
	old, t = object.CloneTree(old), object.CloneTree(t)
	m, err := f.library(context.Background())
	if err != nil {
		panic(err)
	}
	now := object.AccessorOf(t)
	out, err := m.Update(object.AccessorOf(old), now, manager)
	if err != nil {
		now.SetManagedFields(object.AccessorOf(old).GetManagedFields())
		return now.Object
	}
	return content(out)
}

// appliedByLibrary is Apply with the field manager of Kubernetes.
func (f *Fields) appliedByLibrary(old, wanted object.Tree, manager string, force bool) (object.Tree, error) {
	if old == nil {
		old = f.empty
	}
	return f.applyByLibrary(context.Background(), old, wanted, manager, force)
}
