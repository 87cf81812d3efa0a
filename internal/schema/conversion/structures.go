package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/jsonpatch"
)

type keyParams struct {
	pathParams
	KeyField string `json:"keyField"`
}

// byKey is a list of a version that is a map in the other one, by a field of its elements.
func byKey(c *compiler, p *keyParams, a *side) {
	from, to, x, y, ok := c.ends(&p.pathParams, a)
	if !ok {
		return
	}
	if kindOf(x) != list || kindOf(y) != table && kindOf(y) != fields {
		c.invalid("hubPath", p.HubPath, "and spokePath must be a list and a map")
		return
	}
	if p.KeyField == "" {
		c.invalid("keyField", p.KeyField, "is the field of an element that becomes its key")
		return
	}
	a.loses = true // the order
	between(a, from, to,
		func(v any) (any, error) {
			all, ok := v.([]any)
			if !ok {
				return nil, fmt.Errorf("must be a list")
			}
			out := make(object.Tree, len(all))
			for i, e := range all {
				t, ok := e.(object.Tree)
				key, isText := t[p.KeyField].(string)
				if !ok || !isText {
					return nil, fmt.Errorf("element %d has no string in %s, its key in the other version", i, p.KeyField)
				}
				if _, ok := out[key]; ok {
					return nil, fmt.Errorf("the elements with %s %q have the same key in the other version", p.KeyField, key)
				}
				t = maps.Clone(t)
				delete(t, p.KeyField)
				out[key] = t
			}
			return out, nil
		},
		func(v any) (any, error) {
			all, ok := v.(object.Tree)
			if !ok {
				return nil, fmt.Errorf("must be an object")
			}
			out := make([]any, 0, len(all))
			for _, key := range slices.Sorted(maps.Keys(all)) {
				t, ok := all[key].(object.Tree)
				if !ok {
					return nil, fmt.Errorf("the value of %q must be an object", key)
				}
				t = maps.Clone(t)
				t[p.KeyField] = key
				out = append(out, t)
			}
			return out, nil
		})
}

type joinParams struct {
	pathParams
	Separator string `json:"separator"`
}

// join is a list of a version that is a string in the other one.
func join(c *compiler, p *joinParams, a *side) {
	from, to, x, y, ok := c.ends(&p.pathParams, a)
	if !ok {
		return
	}
	if of := itemsOf(x); kindOf(x) != list || kindOf(y) != text || of == nil || !kindOf(of).scalar() {
		c.invalid("hubPath", p.HubPath, "and spokePath must be a list of strings, numbers or booleans, and a string")
		return
	}
	if p.Separator == "" {
		c.invalid("separator", p.Separator, "separates the elements")
		return
	}
	items := kindOf(x.Items.Schema)
	if items == text {
		c.warn("only elements without %q, and lists that are not [\"\"], keep their values", p.Separator)
	}
	between(a, from, to,
		func(v any) (any, error) {
			all, ok := v.([]any)
			if !ok {
				return nil, fmt.Errorf("must be a list")
			}
			parts := make([]string, len(all))
			for i, e := range all {
				s, err := coerce(e, text, "")
				if err != nil {
					return nil, fmt.Errorf("element %d %w", i, err)
				}
				parts[i] = s.(string)
			}
			return strings.Join(parts, p.Separator), nil
		},
		func(v any) (any, error) {
			said, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("must be a string")
			}
			out := []any{}
			if said == "" {
				return out, nil
			}
			for i, part := range strings.Split(said, p.Separator) {
				e, err := coerce(part, items, "Error")
				if err != nil {
					return nil, fmt.Errorf("part %d %w", i, err)
				}
				out = append(out, e)
			}
			return out, nil
		})
}

type renameKeysParams struct {
	pathParams
	Renames map[string]string `json:"renames"`
}

// renameKeys renames keys of a map. Other keys stay.
func renameKeys(c *compiler, p *renameKeysParams) {
	from, to, x, y, ok := c.ends(&p.pathParams, &c.hub)
	if !ok {
		return
	}
	if kindOf(x) != table || kindOf(y) != table {
		c.invalid("hubPath", p.HubPath, "and spokePath must be maps")
		return
	}
	if len(p.Renames) == 0 {
		c.fail(field.Required(c.rule.at.Child("renames"), ""))
		return
	}
	back := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(p.Renames)) {
		v := p.Renames[k]
		if _, ok := back[v]; ok || k == "" || v == "" {
			c.invalid("renames", v, "each key needs another name, and none may be empty")
			return
		}
		back[v] = k
	}
	c.compare(&c.hub, from, x, y)
	c.compare(&c.spoke, to, y, x)
	c.warn("a key that has the name of the other version already, such as %q in version %s, gets another one on its way back", slices.Sorted(maps.Keys(back))[0], c.hub.name)
	renamed := func(names map[string]string) func(v any) (any, error) {
		return func(v any) (any, error) {
			all, ok := v.(object.Tree)
			if !ok {
				return nil, fmt.Errorf("must be an object")
			}
			out := make(object.Tree, len(all))
			for k, e := range all {
				k = orElse(names[k], k)
				if _, ok := out[k]; ok {
					return nil, fmt.Errorf("two keys become %q in the other version", k)
				}
				out[k] = e
			}
			return out, nil
		}
	}
	between(&c.hub, from, to, renamed(p.Renames), renamed(back))
}

type splitParams struct {
	HubPath          string            `json:"hubPath"`
	SpokePath        string            `json:"spokePath"`
	HubFields        map[string]string `json:"hubFields"`
	SpokeFields      map[string]string `json:"spokeFields"`
	Pattern          string            `json:"pattern"`
	JoinTemplate     string            `json:"joinTemplate"`
	LosslessOverride bool              `json:"losslessOverride"`
}

// A splitting is a string of a version whose parts are fields of the other one.
type splitting struct {
	whole   path
	pattern *regexp.Regexp
	joined  []part
	groups  []string // names of the fields
	fields  []path
	kinds   []kind
}

// split is a string of a that is several fields of the other version.
func split(c *compiler, a *side, name, whole string, partsName string, parts map[string]string, p *splitParams) {
	s := &splitting{}
	var err error
	if s.pattern, err = regexp.Compile(p.Pattern); err != nil {
		c.invalid("pattern", p.Pattern, "%v", err)
		return
	}
	if s.joined, err = parseTemplate(p.JoinTemplate); err != nil {
		c.invalid("joinTemplate", p.JoinTemplate, "%v", err)
		return
	}
	for _, group := range slices.Sorted(maps.Keys(parts)) {
		at, schema := c.claim(a.other, partsName, parts[group])
		switch {
		case at == nil:
			return
		case s.pattern.SubexpIndex(group) < 0:
			c.invalid("pattern", p.Pattern, "has no group %q", group)
			return
		case !kindOf(schema).scalar():
			c.invalid(partsName, parts[group], "must be a string, an integer, a number or a boolean, not of the type %s", kindOf(schema))
			return
		}
		s.groups, s.fields, s.kinds = append(s.groups, group), append(s.fields, at), append(s.kinds, kindOf(schema))
	}
	for _, part := range s.joined {
		if part.field != "" && !slices.Contains(s.groups, part.field) {
			c.invalid("joinTemplate", p.JoinTemplate, "there is no field %q", part.field)
			return
		}
	}
	if s.whole, _ = c.claim(a, name, whole); s.whole == nil {
		return
	}
	c.unproven(p.LosslessOverride)
	a.step(step{from: a.taking(s.whole), to: a.writing(s.fields...), eval: s.apart})
	a.other.step(step{from: a.other.taking(s.fields...), to: a.other.writing(s.whole), eval: s.together})
}

// apart splits the string.
func (s *splitting) apart(in object.Tree, w *writes) error {
	v, ok := s.whole.get(in)
	if !ok {
		return nil
	}
	said, _ := v.(string)
	found := s.pattern.FindStringSubmatch(said)
	if found == nil {
		return field.Invalid(s.whole.field(), v, fmt.Sprintf("must match %q, which the conversion rules split", s.pattern))
	}
	for i, g := range s.groups {
		part, err := coerce(found[s.pattern.SubexpIndex(g)], s.kinds[i], "Error")
		if err != nil {
			return field.Invalid(s.whole.field(), v, fmt.Sprintf("%s %v", g, err))
		}
		w.set(s.fields[i], part)
	}
	return nil
}

// together joins the fields, if there is one of them.
func (s *splitting) together(in object.Tree, w *writes) error {
	if !slices.ContainsFunc(s.fields, func(p path) bool { _, ok := p.get(in); return ok }) {
		return nil
	}
	said := strings.Builder{}
	for _, part := range s.joined {
		if part.field == "" {
			said.WriteString(part.text)
			continue
		}
		at := s.fields[slices.Index(s.groups, part.field)]
		v, ok := at.get(in)
		if !ok {
			return field.Required(at.field(), "the conversion rules join it with other fields")
		}
		one, err := coerce(v, text, "")
		if err != nil {
			return field.Invalid(at.field(), v, err.Error())
		}
		said.WriteString(one.(string))
	}
	w.set(s.whole, said.String())
	return nil
}

// unproven marks a rule whose conversions cannot be proven to keep all values. Its author may claim it.
func (c *compiler) unproven(claimed bool) {
	if c.claimed = claimed; !claimed {
		c.hub.loses, c.spoke.loses = true, true
	}
}

// A part of a template is a text or a field.
type part struct{ text, field string }

// parseTemplate parses a template with fields such as {{.value}}, the only actions it may have.
func parseTemplate(s string) (out []part, err error) {
	for s != "" {
		before, rest, ok := strings.Cut(s, "{{")
		if before != "" {
			out = append(out, part{text: before})
		}
		if !ok {
			return out, nil
		}
		action, after, ok := strings.Cut(rest, "}}")
		name := strings.TrimPrefix(strings.TrimSpace(action), ".")
		if !ok || !strings.HasPrefix(strings.TrimSpace(action), ".") || !plainName.MatchString(name) {
			return nil, fmt.Errorf("may have fields such as {{.value}} only")
		}
		out, s = append(out, part{field: name}), after
	}
	return out, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

type jsonPatchParams struct {
	HubToSpoke       []rawMessage `json:"hubToSpoke"`
	SpokeToHub       []rawMessage `json:"spokeToHub"`
	LosslessOverride bool         `json:"losslessOverride"`
}

// jsonPatch applies a JSON patch in each direction. The rule is about all fields that its patches name.
func jsonPatch(c *compiler, p *jsonPatchParams) {
	c.unproven(p.LosslessOverride)
	var named []path
	patches := map[*side]jsonpatch.Operations{}
	written := map[*side][]path{}
	for _, d := range []struct {
		side *side
		name string
		ops  []rawMessage
	}{{&c.hub, "hubToSpoke", p.HubToSpoke}, {&c.spoke, "spokeToHub", p.SpokeToHub}} {
		if len(d.ops) > maxRules {
			c.fail(field.TooMany(c.rule.at.Child(d.name), len(d.ops), maxRules))
			return
		}
		data, err := json.Marshal(d.ops)
		if err == nil && len(d.ops) > 0 {
			patches[d.side], err = jsonpatch.Decode(data)
		}
		if err != nil {
			c.invalid(d.name, string(data), "%v", err)
			return
		}
		for i, op := range patches[d.side] {
			for _, text := range []*string{op.Path, op.From} {
				if text == nil {
					continue
				}
				at := c.known(pointer(*text))
				if len(at) == 0 || at[0] == "metadata" || at[0] == "apiVersion" || at[0] == "kind" {
					c.fail(field.Invalid(c.rule.at.Child(d.name).Index(i), *text, "must be a field below spec, status or another one of the schema"))
					return
				}
				if !slices.ContainsFunc(named, func(p path) bool { return slices.Equal(p, at) }) {
					named = append(named, at)
				}
				if text == op.Path {
					written[d.side] = append(written[d.side], at)
				}
			}
		}
	}
	for _, at := range named {
		if !c.reserve(&c.hub, "hubToSpoke", at) || !c.reserve(&c.spoke, "spokeToHub", at) {
			return
		}
	}
	for _, s := range []*side{&c.hub, &c.spoke} {
		st := step{from: s.taking(named...), to: s.writing(written[s]...)}
		if ops := patches[s]; len(ops) > 0 {
			at := c.rule.at
			st.eval = func(in object.Tree, w *writes) error {
				out, err := ops.Apply(in)
				if err != nil {
					return field.Invalid(named[0].field(), nil, fmt.Sprintf("the JSON patch of %s cannot be applied: %v", at, err))
				}
				for _, p := range written[s] {
					if v, ok := p.get(out); ok {
						w.set(p, v)
					}
				}
				return nil
			}
		}
		s.step(st)
	}
}

// known returns the path to the field, list or map at a path that one of the schemas knows.
func (c *compiler) known(p path) path {
	longest := 0
	for _, s := range []*side{&c.hub, &c.spoke} {
		n := 0
		for n < len(p) {
			if _, err := schemaAt(s.schema, p[:n+1]); err != nil {
				break
			}
			n++
		}
		longest = max(longest, n)
	}
	return p[:longest]
}
