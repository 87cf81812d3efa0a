package conversion

import (
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// strategies returns the strategies of rules, by name. The published names of parameters are from the view
// of the hub, and so most strategies stand here twice: as they are, and mirrored.
func strategies() map[string]strategy {
	return map[string]strategy{
		"FieldRename":            of("fieldRename", rename),
		"ScalarToObject":         of("scalarToObject", func(c *compiler, p *wrapParams) { wrap(c, p, &c.hub) }),
		"ObjectToScalar":         of("objectToScalar", func(c *compiler, p *wrapParams) { wrap(c, p, &c.spoke) }),
		"SingletonArrayToObject": of("singletonArrayToObject", func(c *compiler, p *pathParams) { single(c, p, &c.hub) }),
		"ObjectToSingletonArray": of("objectToSingletonArray", func(c *compiler, p *pathParams) { single(c, p, &c.spoke) }),
		"FieldsToMap": of("fieldsToMap", func(c *compiler, p *fieldsToMapParams) {
			collect(c, &c.hub, named{"hubPaths", p.HubPaths}, named{"spokeMapPath", []string{p.SpokeMapPath}}, p.KeyNames, p.OnUnknownSpokeKey)
		}),
		"MapToFields": of("mapToFields", func(c *compiler, p *mapToFieldsParams) {
			collect(c, &c.spoke, named{"spokePaths", p.SpokePaths}, named{"hubMapPath", []string{p.HubMapPath}}, p.KeyNames, p.OnUnknownHubKey)
		}),
		"ToAnnotation": of("toAnnotation", func(c *compiler, p *toMetadataParams) {
			stash(c, &c.hub, "annotations", named{"hubPath", []string{p.HubPath}}, p.Key, orElse(p.Serialization, "JSON"), p.RestoreOnReverse)
		}),
		"ToLabel": of("toLabel", func(c *compiler, p *toMetadataParams) {
			stash(c, &c.hub, "labels", named{"hubPath", []string{p.HubPath}}, p.Key, orElse(p.Serialization, "JSON"), p.RestoreOnReverse)
		}),
		"FromAnnotation": of("fromAnnotation", func(c *compiler, p *fromMetadataParams) {
			stash(c, &c.spoke, "annotations", named{"spokePath", []string{p.SpokePath}}, p.Key, orElse(p.Serialization, "JSON"), p.StashOnReverse)
		}),
		"FromLabel": of("fromLabel", func(c *compiler, p *fromMetadataParams) {
			stash(c, &c.spoke, "labels", named{"spokePath", []string{p.SpokePath}}, p.Key, orElse(p.Serialization, "String"), p.StashOnReverse)
		}),
		"EnumRemap":    of("enumRemap", remap),
		"DefaultValue": of("defaultValue", func(c *compiler, p *presentParams) { present(c, p, p.Default) }),
		"Constant":     of("constant", func(c *compiler, p *presentParams) { present(c, p, p.Value) }),
		"Delete":       of("delete", func(c *compiler, p *presentParams) { present(c, p, nil) }),
		"JSONPatch":    of("jsonPatch", jsonPatch),
		"ForEach":      of("forEach", forEach),
		"TypeCoerce":   of("typeCoerce", coerceType),
		"ScalarToFields": of("scalarToFields", func(c *compiler, p *splitParams) {
			split(c, &c.hub, "hubPath", p.HubPath, "spokeFields", p.SpokeFields, p)
		}),
		"FieldsToScalar": of("fieldsToScalar", func(c *compiler, p *splitParams) {
			split(c, &c.spoke, "spokePath", p.SpokePath, "hubFields", p.HubFields, p)
		}),
		"ArrayToMapByKey": of("arrayToMapByKey", func(c *compiler, p *keyParams) { byKey(c, p, &c.hub) }),
		"MapToArrayByKey": of("mapToArrayByKey", func(c *compiler, p *keyParams) { byKey(c, p, &c.spoke) }),
		"NumericScale":    of("numericScale", scale),
		"ListJoin":        of("listJoin", func(c *compiler, p *joinParams) { join(c, p, &c.hub) }),
		"ListSplit":       of("listSplit", func(c *compiler, p *joinParams) { join(c, p, &c.spoke) }),
		"Quantity":        of("quantity", func(c *compiler, p *pathParams) { measure(c, p, quantity) }),
		"Duration":        of("duration", func(c *compiler, p *pathParams) { measure(c, p, duration) }),
		"MapKeyRename":    of("mapKeyRename", renameKeys),
		"CEL":             of("cel", expressions),
	}
}

// A named is a parameter with paths.
type named struct {
	name  string
	paths []string
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

type pathParams struct {
	HubPath   string `json:"hubPath"`
	SpokePath string `json:"spokePath"`
}

// of returns the path of a side.
func (p *pathParams) of(c *compiler, s *side) (name, text string) {
	if s == &c.hub {
		return "hubPath", p.HubPath
	}
	return "spokePath", p.SpokePath
}

// ends claims the fields of a rule between two fields, of a and of the other version.
func (c *compiler) ends(p *pathParams, a *side) (from, to path, x, y *v1.JSONSchemaProps, ok bool) {
	name, text := p.of(c, a)
	from, x = c.claim(a, name, text)
	name, text = p.of(c, a.other)
	to, y = c.claim(a.other, name, text)
	return from, to, x, y, from != nil && to != nil
}

// between adds steps between the field from of a version and the field to of the other one.
func between(a *side, from, to path, forth, back func(v any) (any, error)) {
	step := func(s *side, from, to path, change func(v any) (any, error)) {
		s.step(step{from: s.taking(from), to: s.writing(to), eval: func(in object.Tree, w *writes) error {
			v, ok := from.get(in)
			if !ok {
				return nil
			}
			changed, err := change(v)
			if err != nil {
				return field.Invalid(from.field(), v, err.Error())
			}
			if changed != nothing {
				w.set(to, changed)
			}
			return nil
		}})
	}
	step(a, from, to, forth)
	step(a.other, to, from, back)
}

// nothing stands for a missing value, where nil is one.
var nothing any = new(byte)

// rename moves a value.
func rename(c *compiler, p *pathParams) {
	from, to, x, y, ok := c.ends(p, &c.hub)
	if !ok {
		return
	}
	if kx, ky := kindOf(x), kindOf(y); kx != ky {
		c.invalid("spokePath", p.SpokePath, "has the type %s; %s of version %s has the type %s", ky, from, c.hub.name, kx)
		return
	}
	c.compare(&c.hub, from, x, y)
	c.compare(&c.spoke, to, y, x)
	move(&c.hub, from, to, nil)
	move(&c.spoke, to, from, nil)
}

// compare marks a loss if the other version drops a part of a value.
func (c *compiler) compare(s *side, p path, mine, its *v1.JSONSchemaProps) {
	if at, differs := difference(mine, its); differs {
		s.loses = true
		c.warn("version %s has no field for %s of version %s, or another type", s.other.name, s.prefix+p.String()+at, s.name)
	}
}

// move adds a step that moves a value, and converts its elements.
func move(s *side, from, to path, items *plan) {
	s.step(step{from: s.taking(from), to: s.writing(to), moves: true, items: items,
		eval: func(in object.Tree, w *writes) error {
			v, ok := from.get(in)
			if !ok {
				return nil
			}
			if items != nil {
				if _, ok := v.([]any); !ok {
					return field.Invalid(from.field(), v, "must be a list: the conversion rules are about its elements")
				}
			}
			w.all = append(w.all, write{path: to, value: v, items: items})
			return nil
		}})
}

type wrapParams struct {
	pathParams
	Key                  string         `json:"key"`
	DefaultsForOtherKeys map[string]any `json:"defaultsForOtherKeys"`
}

// wrap is a scalar of a version that is a field of an object in the other one.
func wrap(c *compiler, p *wrapParams, a *side) {
	from, to, _, whole, ok := c.ends(&p.pathParams, a)
	if !ok {
		return
	}
	if p.Key == "" {
		c.invalid("key", p.Key, "is the field of the object with the value")
		return
	}
	for name := range whole.Properties {
		if name != p.Key {
			a.other.loses = true
		}
	}
	between(a, from, to,
		func(v any) (any, error) {
			out := object.Tree{}
			for k, d := range p.DefaultsForOtherKeys {
				out[k] = object.Clone(d)
			}
			out[p.Key] = v
			return out, nil
		},
		func(v any) (any, error) {
			t, _ := v.(object.Tree)
			if inner, ok := t[p.Key]; ok {
				return inner, nil
			}
			return nothing, nil
		})
}

// single is a list of a version whose first element is an object in the other one.
func single(c *compiler, p *pathParams, a *side) {
	from, to, array, _, ok := c.ends(p, a)
	if !ok {
		return
	}
	a.loses = array.MaxItems == nil || *array.MaxItems > 1
	between(a, from, to,
		func(v any) (any, error) {
			if all, ok := v.([]any); ok && len(all) > 0 {
				return all[0], nil
			}
			return nothing, nil
		},
		func(v any) (any, error) { return []any{v}, nil })
}

type fieldsToMapParams struct {
	HubPaths          []string          `json:"hubPaths"`
	SpokeMapPath      string            `json:"spokeMapPath"`
	KeyNames          map[string]string `json:"keyNames"`
	OnUnknownSpokeKey string            `json:"onUnknownSpokeKey"`
}

type mapToFieldsParams struct {
	HubMapPath      string            `json:"hubMapPath"`
	SpokePaths      []string          `json:"spokePaths"`
	KeyNames        map[string]string `json:"keyNames"`
	OnUnknownHubKey string            `json:"onUnknownHubKey"`
}

// collect is several fields of a that are keys of a map in the other version.
func collect(c *compiler, a *side, parts, whole named, keys map[string]string, unknown string) {
	drops, ok := c.drops("onUnknown", unknown)
	into, _ := c.claim(a.other, whole.name, whole.paths[0])
	var from []path
	var names []string
	for _, text := range parts.paths {
		p, _ := c.claim(a, parts.name, text)
		if p == nil {
			ok = false
			continue
		}
		from, names = append(from, p), append(names, orElse(keys[text], p[len(p)-1]))
	}
	if !ok || into == nil {
		return
	}
	a.other.loses = drops
	a.step(step{from: a.taking(from...), to: a.writing(into), eval: func(in object.Tree, w *writes) error {
		out := object.Tree{}
		for i, p := range from {
			if v, ok := p.get(in); ok {
				out[names[i]] = v
			}
		}
		if len(out) > 0 {
			w.set(into, out)
		}
		return nil
	}})
	a.other.step(step{from: a.other.taking(into), to: a.other.writing(from...), eval: func(in object.Tree, w *writes) error {
		v, ok := into.get(in)
		if !ok {
			return nil
		}
		all, ok := v.(object.Tree)
		if !ok {
			return field.Invalid(into.field(), v, "must be an object")
		}
		found := 0
		for i, p := range from {
			if v, ok := all[names[i]]; ok {
				found++
				w.set(p, v)
			}
		}
		if found < len(all) && !drops {
			return field.Invalid(into.field(), v, fmt.Sprintf("the conversion rules know the keys %v only", names))
		}
		return nil
	}})
}

// drops reports whether a policy drops unknown values.
func (c *compiler) drops(name, policy string) (drops, ok bool) {
	switch policy {
	case "", "Error":
		return false, true
	case "Drop":
		return true, true
	}
	c.fail(field.NotSupported(c.rule.at.Child(name), policy, []string{"Drop", "Error"}))
	return false, false
}

type presentParams struct {
	Path     string `json:"path"`
	ExistsOn string `json:"existsOn"`
	Default  any    `json:"default"`
	Value    any    `json:"value"`
}

// present is a field that only one version has. Conversions to that version set a value, nil for none.
func present(c *compiler, p *presentParams, value any) {
	has := &c.hub
	switch p.ExistsOn {
	case "Hub":
	case "Spoke":
		has = &c.spoke
	default:
		c.fail(field.NotSupported(c.rule.at.Child("existsOn"), p.ExistsOn, []string{"Hub", "Spoke"}))
		return
	}
	at, schema := c.claim(has, "path", p.Path)
	if at == nil {
		return
	}
	if value != nil && !fits(value, kindOf(schema)) {
		c.invalid("path", p.Path, "has the type %s, but the value does not", kindOf(schema))
	}
	has.loses = true
	has.step(step{from: has.taking(at)})
	if value != nil {
		has.other.step(step{eval: func(_ object.Tree, w *writes) error {
			w.set(at, object.Clone(value))
			return nil
		}})
	}
}

type forEachParams struct {
	HubItemsPath   string       `json:"hubItemsPath"`
	SpokeItemsPath string       `json:"spokeItemsPath"`
	Rules          []rawMessage `json:"rules"`
}

// maxDepth limits the lists in lists.
const maxDepth = 2

// forEach applies rules to each element of a list.
func forEach(c *compiler, p *forEachParams) {
	from, x := c.claim(&c.hub, "hubItemsPath", p.HubItemsPath)
	to, y := c.claim(&c.spoke, "spokeItemsPath", p.SpokeItemsPath)
	if from == nil || to == nil {
		return
	}
	if c.depth == maxDepth {
		c.fail(field.Forbidden(c.rule.at, fmt.Sprintf("at most %d lists may be in each other", maxDepth)))
		return
	}
	for _, s := range []*v1.JSONSchemaProps{x, y} {
		if of := itemsOf(s); of == nil || kindOf(of) != fields {
			c.invalid("hubItemsPath", p.HubItemsPath, "and spokeItemsPath must be lists of objects with known fields")
			return
		}
	}
	var verdict Pair
	in := &compiler{report: c.report, verdict: &verdict, at: c.rule.at.Child("rules"), depth: c.depth + 1,
		hub:   side{name: c.hub.name, schema: x.Items.Schema, prefix: c.hub.prefix + from.String() + "[]."},
		spoke: side{name: c.spoke.name, schema: y.Items.Schema, prefix: c.spoke.prefix + to.String() + "[]."}}
	in.hub.other, in.spoke.other = &in.spoke, &in.hub
	in.compile(p.Rules)
	c.hub.missed, c.spoke.missed = append(c.hub.missed, in.hub.missed...), append(c.spoke.missed, in.spoke.missed...)
	// The rules acknowledge their own losses, and fields without a rule have their own policy.
	c.hub.lossy, c.spoke.lossy = c.hub.lossy || in.hub.lossy, c.spoke.lossy || in.spoke.lossy
	move(&c.hub, from, to, &in.hub.plan)
	move(&c.spoke, to, from, &in.spoke.plan)
}
