package check

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
)

// Conversions configures the versions in which an accepted object is read.
type Conversions struct {
	// To is the version of objects in Results.
	To string
	// RoundTrip reads the object in every other served version, writes it in that version, and
	// compares the result with the original.
	RoundTrip bool
}

func (c Conversions) any() bool { return c.To != "" || c.RoundTrip }

// convert reads an accepted object in other versions. It is stored meanwhile.
func (c *checker) convert(ctx context.Context, d *Document, r *Result) error {
	k, err := c.find(d)
	if err != nil {
		return err
	}
	if k.definition.Version(k.version.Name).Creater != nil {
		return nil // a virtual kind, never stored
	}
	id := c.identify(k, d)
	lock, _ := c.shown.LoadOrStore(id, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	before := r.stored()
	id.name = object.Name(before)
	key := k.definition.Key(id.namespace, id.name)
	defer func() {
		var was []byte
		if r.old != nil {
			was = object.AppendJSON(nil, r.old)
		}
		_ = c.server.Put(context.WithoutCancel(ctx), key, was)
	}()
	for _, v := range k.definition.Versions {
		if !v.Served || v.Name == k.version.Name || !c.o.Convert.RoundTrip && v.Name != c.o.Convert.To {
			continue
		}
		stored := object.CloneTree(before)
		asStored(stored, k.definition, id.namespace)
		if err := c.server.Put(ctx, key, object.AppendJSON(nil, stored)); err != nil {
			return err
		}
		if err := c.roundTrip(ctx, k, id, v.Name, before, r); err != nil {
			return err
		}
	}
	if to := c.o.Convert.To; to != "" && to != k.version.Name && r.shown == nil && r.Verdict == Accepted {
		r.Verdict, r.Message = Unknown, fmt.Sprintf("%s is not a served version of %s", to, k.definition.GroupResource())
		r.Problems = append(r.Problems, Problem{Field: "apiVersion", Message: r.Message})
	}
	d.place(r)
	return nil
}

// roundTrip reads an object in a version, writes it in that version, and compares the result.
func (c *checker) roundTrip(ctx context.Context, k kind, id identity, version string, before object.Tree, r *Result) error {
	at := func(version string, query url.Values) string { return path(k.definition, version, id, query) }
	got, err := Ask(ctx, c.server, http.MethodGet, at(version, nil), "", nil)
	if err != nil {
		return err
	}
	shown := got.tree()
	if shown == nil {
		r.lose("apiVersion", fmt.Sprintf("the object cannot be converted to %s: %s", version, got.status().Message), Unknown)
		return nil
	}
	if version == c.o.Convert.To {
		r.shown = shown
	}
	if !c.o.Convert.RoundTrip {
		return nil
	}
	query := url.Values{"fieldValidation": {metav1.FieldValidationStrict}}
	put, err := Ask(ctx, c.server, http.MethodPut, at(version, query), codec.JSON.String(), got.Body)
	if err != nil {
		return err
	}
	if put.tree() == nil {
		r.lose("apiVersion", fmt.Sprintf("%s rejects the converted object: %s", version, put.status().Message), Lossy)
		return nil
	}
	back, err := Ask(ctx, c.server, http.MethodGet, at(k.version.Name, nil), "", nil)
	if err != nil {
		return err
	}
	t := back.tree()
	if t == nil {
		r.lose("apiVersion", fmt.Sprintf("the object cannot be converted back from %s: %s", version, back.status().Message), Lossy)
		return nil
	}
	way := fmt.Sprintf("%s to %s and back", k.version.Name, version)
	for _, change := range Changes(plain(before), plain(t)) {
		r.lose(change.Path, way+" "+change.String(), Lossy)
	}
	return nil
}

// lose records a loss in another version.
func (r *Result) lose(field, message string, verdict Verdict) {
	r.Verdict = verdict
	if r.Message == "" {
		r.Message = message
	}
	r.Problems = append(r.Problems, Problem{Field: field, Message: message})
}

// ofServer are the metadata fields that only the server sets, with different values each time.
func ofServer() []string {
	return []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"}
}

// plain returns an object without fields that only the server sets.
func plain(t object.Tree) object.Tree {
	t = object.CloneTree(t)
	metadata := object.Metadata(t)
	for _, field := range ofServer() {
		delete(metadata, field)
	}
	if isDefinition(t) {
		delete(t, "status") // it has times
	}
	return t
}

// A Change is a field that differs between two objects. Was or Now is nil if only one has it.
type Change struct {
	Path     string
	Was, Now any
}

func (c Change) String() string {
	switch {
	case c.Now == nil:
		return "loses the field"
	case c.Was == nil:
		return fmt.Sprintf("adds the field, as %s", object.AppendJSON(nil, c.Now))
	}
	return fmt.Sprintf("changes the field from %s to %s", object.AppendJSON(nil, c.Was), object.AppendJSON(nil, c.Now))
}

// Changes compares two objects, and returns the smallest differences.
func Changes(old, now any) []Change { return changes(nil, "", old, now) }

func changes(out []Change, path string, old, now any) []Change {
	a, isTree := old.(object.Tree)
	b, areTrees := now.(object.Tree)
	if isTree && areTrees {
		for _, key := range keysOf(a, b) {
			below := path + "[" + key + "]"
			if !strings.ContainsAny(key, "./") {
				below = strings.TrimPrefix(path+"."+key, ".")
			}
			out = changes(out, below, a[key], b[key])
		}
		return out
	}
	x, isList := old.([]any)
	y, areLists := now.([]any)
	if isList && areLists && len(x) == len(y) {
		for i := range x {
			out = changes(out, fmt.Sprintf("%s[%d]", path, i), x[i], y[i])
		}
		return out
	}
	if !object.Equal(old, now) {
		out = append(out, Change{path, old, now})
	}
	return out
}

// keysOf returns the keys of two trees, sorted.
func keysOf(a, b object.Tree) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
