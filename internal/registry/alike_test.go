package registry_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/structural"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

const itemSchema = `{"type":"object","description":%q,"properties":{"spec":{"type":"object","properties":{
	"name":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","default":"x"}}}}}}}}`

// items is a kind with two versions; v1 is the storage version. Their schemas are equal, or differ in
// their description.
func items(same bool) *resource.Definition {
	var shared structural.Shared
	d := &resource.Definition{Group: "example.com", Plural: "items", Singular: "item", Kind: "Item", ListKind: "ItemList", StoragePrefix: "/registry/items/"}
	for _, name := range []string{"v1", "v1beta1"} {
		description := "an item"
		if !same {
			description += " in " + name
		}
		source := jsonschema.NewSource(func() ([]byte, error) { return fmt.Appendf(nil, itemSchema, description), nil })
		d.Versions = append(d.Versions, &resource.Version{
			Name: name, Served: true, Storage: name == "v1",
			Schema: schema.Stored(source, model.Kind{Group: d.Group, Version: name, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural}, &shared),
		})
	}
	return d
}

// read returns a registry and the first object of a kind, of about 1.7 kB.
func read(t testing.TB, d *resource.Definition) (*registry.Registry, *watchcache.Object) {
	t.Helper()
	backend := memkv.New(memkv.Options{})
	value := `{"apiVersion":"example.com/v1","kind":"Item","metadata":{"labels":{"a":"b"},"name":"a","uid":"u"},"spec":{"items":[` +
		strings.Repeat(`{"a":12345678,"b":"some text in it"},`, 40) + `{"a":1,"b":"x"}],"name":"n"}}`
	if _, err := backend.Commit(t.Context(), kv.Write{Key: d.Key("", "a"), Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	cache := caching(t, backend)
	if _, err := cache.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := cache.Resource(d.StoragePrefix).Get(t.Context(), d.Key("", "a"))
	if err != nil {
		t.Fatal(err)
	}
	return registry.New(backend, cache, registry.Options{}), o
}

// "When the schemas agree it is the same bytes with another prefix": a version with the same schema
// shows the stored bytes. A version with another schema of the same fields shows equal bytes.
func TestAlike(t *testing.T) {
	var shown [2][]byte
	for i, same := range []bool{true, false} {
		d := items(same)
		r, o := read(t, d)
		v := d.Version("v1beta1")
		e, err := r.View(t.Context(), d, v, o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if stored := &e.JSON[0] == &data[0]; stored != same {
			t.Errorf("same schema %t: what is shown is what is stored: %t", same, stored)
		}
		shown[i] = e.Append(nil, "example.com/v1beta1")
		tree, err := r.Decode(t.Context(), d, v, o)
		if err != nil || tree["apiVersion"] != "example.com/v1beta1" {
			t.Errorf("decoded it is %v, %v", tree["apiVersion"], err)
		}
	}
	if !bytes.Equal(shown[0], shown[1]) {
		t.Errorf("got\n%s\nwant\n%s", shown[0], shown[1])
	}
}

// BenchmarkView measures View of an object of 1.7 kB in a version other than its stored one: with and
// without the same schema, for the first time and later.
func BenchmarkView(b *testing.B) {
	show := func(b *testing.B, same bool, again bool) {
		d := items(same)
		r, o := read(b, d)
		v := d.Version("v1beta1")
		var out []byte
		for b.Loop() {
			if !again {
				e, err := o.Read()
				if err != nil {
					b.Fatal(err)
				}
				o = watchcache.Of(o.Key, *e)
			}
			e, err := r.View(b.Context(), d, v, o)
			if err != nil {
				b.Fatal(err)
			}
			out = e.Append(out[:0], "example.com/v1beta1")
		}
	}
	b.Run("alike", func(b *testing.B) { show(b, true, false) })
	b.Run("otherwise", func(b *testing.B) { show(b, false, false) })
	b.Run("otherwise again", func(b *testing.B) { show(b, false, true) })
}
