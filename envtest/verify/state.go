package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/envtest"
)

// A State is the content of the server at one revision. Objects have their storage versions.
type State struct {
	// Revision is that of the last change.
	Revision int64

	scheme  *runtime.Scheme
	objects map[identity]*unstructured.Unstructured
	names   map[identity]string // of all objects so far; the values are generateName
	changes map[identity]int64  // revision of the last applied change of each object
}

func (s *State) clone() *State {
	c := *s
	c.objects, c.names, c.changes = maps.Clone(s.objects), maps.Clone(s.names), nil
	return &c
}

// put adds or replaces an object.
func (s *State) put(u *unstructured.Unstructured) {
	s.objects[identityOf(u)] = u
	s.names[identityOf(u)] = u.GetGenerateName()
}

// An identity identifies an object.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func identityOf(u *unstructured.Unstructured) identity {
	return identity{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

func (i identity) String() string {
	if i.namespace == "" {
		return i.kind.Kind + " " + i.name
	}
	return i.kind.Kind + " " + i.namespace + "/" + i.name
}

// Get reads an object. If there is none, the error is the one of a server: NotFound.
func (s *State) Get(key client.ObjectKey, into client.Object) error {
	gvk, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return err
	}
	u := s.objects[identity{gvk.GroupKind(), key.Namespace, key.Name}]
	if u == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind)}, key.Name)
	}
	return convert(u, gvk, into)
}

// List reads the objects of a kind, ordered by namespace and name. Of the options, namespace and labels
// count.
func (s *State) List(into client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	var o client.ListOptions
	o.ApplyOptions(options)
	var items []runtime.Object
	for _, id := range sorted(s.objects) {
		u := s.objects[id]
		if id.kind != gvk.GroupKind() || o.Namespace != "" && o.Namespace != id.namespace ||
			o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(u.GetLabels())) {
			continue
		}
		item, err := s.scheme.New(gvk)
		if _, plain := into.(*unstructured.UnstructuredList); plain || err != nil {
			item = &unstructured.Unstructured{}
		}
		if err := convert(u, gvk, item); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(into, items)
}

// sorted returns the keys of a map, in order.
func sorted[V any](of map[identity]V) []identity {
	return slices.SortedFunc(maps.Keys(of), func(a, b identity) int {
		return strings.Compare(a.kind.String()+"\x00"+a.namespace+"\x00"+a.name, b.kind.String()+"\x00"+b.namespace+"\x00"+b.name)
	})
}

func convert(u *unstructured.Unstructured, gvk schema.GroupVersionKind, into runtime.Object) error {
	if stored := u.GroupVersionKind(); stored != gvk {
		return fmt.Errorf("the storage version of %s is %s: read that version, not %s", gvk.Kind, stored.Version, gvk.Version)
	}
	if to, ok := into.(*unstructured.Unstructured); ok {
		u.DeepCopyInto(to)
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// idOf returns the identity of the object of a change.
func idOf(c envtest.Change) identity {
	if c.After == nil {
		return identityOf(c.Before)
	}
	return identityOf(c.After)
}

// apply applies a change, unless a later one of the object was applied: concurrent changes come in any order. It reports whether
// it did.
func (s *State) apply(c envtest.Change) bool {
	s.Revision = max(s.Revision, c.Revision)
	id := idOf(c)
	if c.Revision < s.changes[id] {
		return false
	}
	if s.changes == nil {
		s.changes = map[identity]int64{}
	}
	s.changes[id] = c.Revision
	if c.After == nil {
		delete(s.objects, id)
	} else {
		s.put(c.After)
	}
	return true
}

// passing reports whether objects of a kind do not belong to an end state: they record what happened.
func passing(k schema.GroupKind) bool {
	return k.Kind == "Event" && (k.Group == "" || k.Group == "events.k8s.io") || k.Kind == "Lease" && k.Group == "coordination.k8s.io"
}

// deleted is the value of an object that was there before the run.
const deleted = "deleted"

// An end is a State without values that differ between equal runs. Keys are those of objects.
type end map[string]any

// end returns the state without the objects of base that are the same, and without those that only record
// what happened. Names of kinds in random count as generated.
func (s *State) end(base *State, random map[string]bool) end {
	names := namesOf(s.names, s.objects, random)
	e, keyOf := end{}, s.keys()
	alike := map[string][]string{} // contents of objects whose names are generated or have a generated part, by key
	for _, id := range sorted(s.objects) {
		u := s.objects[id]
		if passing(id.kind) || base.objects[id] == u {
			continue
		}
		value := names.stable(bare(u))
		text := keyOf(id)
		key := names.text(text)
		if key != text {
			alike[key] = append(alike[key], compact(value))
			continue
		}
		e[key] = value
	}
	for key, contents := range alike {
		slices.Sort(contents)
		for i, c := range contents {
			var value any
			_ = json.Unmarshal([]byte(c), &value)
			e[fmt.Sprintf("%s#%d", key, i+1)] = value
		}
	}
	for id := range base.objects {
		if s.objects[id] == nil && !passing(id.kind) {
			e[keyOf(id)] = deleted
		}
	}
	return e
}

// keys returns a function that names objects in an end. If two groups have had an object of the same kind and name, the name has
// the group.
func (s *State) keys() func(identity) string {
	groups := map[string]int{}
	for id := range s.names {
		groups[id.String()]++
	}
	return func(id identity) string {
		text := id.String()
		if groups[text] > 1 {
			return id.kind.String() + strings.TrimPrefix(text, id.kind.Kind)
		}
		return text
	}
}

// names replaces uids and generated names.
type names struct{ replacer *strings.Replacer }

func namesOf(all map[identity]string, objects map[identity]*unstructured.Unstructured, random map[string]bool) names {
	stands := map[string]string{}
	for id, begin := range all {
		switch {
		case begin != "" && strings.HasPrefix(id.name, begin):
			stands[id.name] = begin + "*"
		case random[id.kind.Kind]:
			stands[id.name] = "*"
		}
	}
	var pairs []string
	longest := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(stands), longest) { // one can be the beginning of another
		pairs = append(pairs, name, stands[name])
	}
	for id, u := range objects {
		if uid := string(u.GetUID()); uid != "" {
			name := id.name
			if other := stands[name]; other != "" {
				name = other
			}
			pairs = append(pairs, uid, "uid of "+id.kind.Kind+" "+name)
		}
	}
	return names{strings.NewReplacer(pairs...)}
}

var (
	times = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	uids  = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
)

func (n names) text(s string) string {
	s = times.ReplaceAllString(n.replacer.Replace(s), "<time>")
	return uids.ReplaceAllString(s, "<uid>")
}

// stable replaces the texts in a value.
func (n names) stable(value any) any {
	switch v := value.(type) {
	case string:
		return n.text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			out[n.text(name)] = n.stable(field)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = n.stable(item)
		}
		return out
	}
	return value
}

// bare returns the fields of an object that belong to an end state. Generations count writes, so only their
// relation stays.
func bare(u *unstructured.Unstructured) map[string]any {
	object := u.DeepCopy().Object
	metadata, _ := object["metadata"].(map[string]any)
	generation := metadata["generation"]
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "name", "generateName"} {
		delete(metadata, name)
	}
	observed(object["status"], generation)
	return object
}

// observed replaces observedGeneration by its relation to the generation.
func observed(value, generation any) {
	switch v := value.(type) {
	case map[string]any:
		if seen, ok := v["observedGeneration"]; ok {
			v["observedGeneration"] = "behind"
			if reflect.DeepEqual(seen, generation) || fmt.Sprint(seen) == fmt.Sprint(generation) {
				v["observedGeneration"] = "current"
			}
		}
		for _, field := range v {
			observed(field, generation)
		}
	case []any:
		for _, item := range v {
			observed(item, generation)
		}
	}
}

func compact(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}
