package conversion

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// A target is a field that a rule writes, and its schema. The schema is nil in metadata.
type target struct {
	path
	schema *v1.JSONSchemaProps
}

// convertOwners converts managedFields, whose entries have versions of their own, to the version of a
// converted object. Entries of one manager that differed in their version become one.
func (c *Converter) convertOwners(obj object.Tree, version string) {
	metadata, _ := obj["metadata"].(object.Tree)
	all, _ := metadata["managedFields"].([]any)
	kept := all[:0]
	for _, e := range all {
		entry, ok := e.(object.Tree)
		owned, isSet := entry["fieldsV1"].(object.Tree)
		from := versionOf(object.APIVersion(entry), c.group)
		if ok && isSet && from != version && (from == c.hub || c.spokes[from] != nil) {
			switch {
			case from == c.hub:
				c.spokes[version].toSpoke.convertOwned(owned, obj)
			case version == c.hub:
				c.spokes[from].toHub.convertOwned(owned, obj)
			default:
				c.spokes[from].toHub.convertOwned(owned, nil)
				c.spokes[version].toSpoke.convertOwned(owned, obj)
			}
			if len(owned) == 0 {
				continue
			}
			entry["apiVersion"] = c.group + "/" + version
			if same := slices.IndexFunc(kept, func(k any) bool { return sameManager(k.(object.Tree), entry) }); same >= 0 {
				merge(kept[same].(object.Tree), entry)
				continue
			}
		}
		kept = append(kept, e)
	}
	if len(kept) < len(all) {
		metadata["managedFields"] = slices.Clip(kept)
	}
}

// sameManager reports whether two entries of managedFields are of the same writer and version.
func sameManager(a, b object.Tree) bool {
	for _, name := range []string{"manager", "operation", "apiVersion", "subresource"} {
		if a[name] != b[name] {
			return false
		}
	}
	return true
}

// merge adds the fields of an entry to another one.
func merge(into, from object.Tree) {
	a, _ := into["fieldsV1"].(object.Tree)
	b, _ := from["fieldsV1"].(object.Tree)
	if a != nil && b != nil {
		unite(a, b)
	}
	was, _ := into["time"].(string)
	if now, _ := from["time"].(string); now > was {
		into["time"] = now
	}
}

func unite(a, b object.Tree) {
	for k, v := range b {
		mine, ok := a[k].(object.Tree)
		its, isTree := v.(object.Tree)
		if ok && isTree {
			unite(mine, its)
		} else {
			a[k] = v
		}
	}
}

// convertOwned converts a set of fields in the form of fieldsV1. The converted object says which parts of
// a computed value there are; without one, the value is owned as a whole.
func (p *plan) convertOwned(owned, obj object.Tree) {
	type found struct {
		step *step
		node object.Tree
	}
	var moved []found
	for i := range p.steps {
		s := &p.steps[i]
		for k, t := range s.from {
			node := takeOwned(owned, t.path)
			if node != nil && (k == 0 || len(moved) == 0 || moved[len(moved)-1].step != s) {
				moved = append(moved, found{s, node})
			}
		}
	}
	for _, t := range p.unmapped {
		takeOwned(owned, t.path)
	}
	for _, m := range moved {
		if m.step.moves {
			if m.step.items != nil {
				m.node = m.step.items.convertOwnedItems(m.node)
			}
			putOwned(owned, m.step.to[0].path, m.node)
			continue
		}
		for _, t := range m.step.to {
			node := object.Tree{}
			if obj != nil && t.schema != nil {
				if v, ok := t.path.get(obj); ok {
					node = ownedBy(v, t.schema)
				}
			}
			putOwned(owned, t.path, node)
		}
	}
}

// convertOwnedItems converts the set of the elements of a list.
func (p *plan) convertOwnedItems(owned object.Tree) object.Tree {
	out := make(object.Tree, len(owned))
	for k, e := range owned {
		if below, ok := e.(object.Tree); ok && k != "." {
			p.convertOwned(below, nil)
		}
		out[p.convertKey(k)] = e
	}
	return out
}

// convertKey converts the key of an element, such as k:{"name":"a"}, whose fields rules may rename.
func (p *plan) convertKey(k string) string {
	if !strings.HasPrefix(k, "k:") {
		return k
	}
	var key object.Tree
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(k[2:]), &key); err != nil {
		return k
	}
	renamed := object.Tree{}
	for i := range p.steps {
		s := &p.steps[i]
		if !s.moves || len(s.from[0].path) != 1 || len(s.to[0].path) != 1 {
			continue
		}
		if v, ok := key[s.from[0].path[0]]; ok {
			delete(key, s.from[0].path[0])
			renamed[s.to[0].path[0]] = v
		}
	}
	if len(renamed) == 0 {
		return k
	}
	maps.Copy(key, renamed)
	return "k:" + string(object.AppendJSON(nil, key))
}

// takeOwned removes a field from a set, and its parents that are empty then. It returns nil if the set
// does not have it.
func takeOwned(owned object.Tree, p path) object.Tree {
	name := "f:" + p[0]
	node, ok := owned[name].(object.Tree)
	if !ok {
		return nil
	}
	if len(p) == 1 {
		delete(owned, name)
		return node
	}
	out := takeOwned(node, p[1:])
	if out != nil && len(node) == 0 {
		delete(owned, name)
	}
	return out
}

// putOwned adds a field to a set.
func putOwned(owned object.Tree, p path, node object.Tree) {
	for _, name := range p[:len(p)-1] {
		next, ok := owned["f:"+name].(object.Tree)
		if !ok {
			next = object.Tree{}
			owned["f:"+name] = next
		}
		owned = next
	}
	last := "f:" + p[len(p)-1]
	if known, ok := owned[last].(object.Tree); ok {
		unite(known, node)
		return
	}
	owned[last] = node
}

// ownedBy returns the set of all fields of a value.
func ownedBy(v any, s *v1.JSONSchemaProps) object.Tree {
	out := object.Tree{}
	switch v := v.(type) {
	case object.Tree:
		if s.XMapType != nil && *s.XMapType == "atomic" {
			return out
		}
		for k, e := range v {
			of := v1.JSONSchemaProps{}
			if known, ok := s.Properties[k]; ok {
				of = known
			} else if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				of = *s.AdditionalProperties.Schema
			}
			out["f:"+k] = ownedBy(e, &of)
		}
	case []any:
		if s.XListType == nil || itemsOf(s) == nil {
			return out
		}
		for _, e := range v {
			switch t, ok := e.(object.Tree); {
			case *s.XListType == "set":
				out["v:"+string(object.AppendJSON(nil, e))] = object.Tree{}
			case *s.XListType == "map" && ok:
				key := object.Tree{}
				for _, name := range s.XListMapKeys {
					key[name] = t[name]
				}
				node := ownedBy(t, s.Items.Schema)
				node["."] = object.Tree{}
				out["k:"+string(object.AppendJSON(nil, key))] = node
			}
		}
	}
	return out
}
