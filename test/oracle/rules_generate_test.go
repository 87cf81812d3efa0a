package oracle

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

var awkwardNames = []string{
	"a", "b", "c", "kind", "name", "metadata", "a-b", "a.b", "a__b", "x/y", "namespace", "in", "true", "_1", "1x", "é", "dot", "__dot__", "items", "int",
}

// ruled returns a structural schema with rules, some of which are invalid.
func (g generator) ruled() *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": *g.limited(4), "status": *g.limited(2),
	}}
	if g.one(3) {
		p.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name": {Type: "string", MaxLength: g.limit(3)},
		}}
	}
	if g.one(4) {
		p.Properties["kind"], p.Properties["apiVersion"] = apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	g.addRules(p, 3)
	return p
}

func (g generator) limit(odds int) *int64 {
	if g.one(odds) {
		return nil
	}
	return new(pick(g, int64(1), 5, 20, 500))
}

// limited returns a schema of a value of any type, with size limits.
func (g generator) limited(depth int) *apiextensionsv1.JSONSchemaProps {
	p := g.limitedType(depth)
	p.Nullable = g.one(6)
	g.addRules(p, 4)
	return p
}

func (g generator) limitedType(depth int) *apiextensionsv1.JSONSchemaProps {
	if depth == 0 || g.one(3) {
		switch g.IntN(8) {
		case 0:
			return &apiextensionsv1.JSONSchemaProps{XIntOrString: true, MaxLength: g.limit(2)}
		case 1:
			return &apiextensionsv1.JSONSchemaProps{Type: pick(g, "integer", "number", "boolean")}
		case 2:
			return &apiextensionsv1.JSONSchemaProps{Type: "string", Format: pick(g, "byte", "date", "date-time", "duration", "uuid"), MaxLength: g.limit(2)}
		case 3:
			return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}
		case 4:
			return &apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{*asJSON("x"), *asJSON("yy")}}
		default:
			return &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: g.limit(3)}
		}
	}
	switch g.IntN(5) {
	case 0:
		p := &apiextensionsv1.JSONSchemaProps{Type: "array", MaxItems: g.limit(3), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.limited(depth - 1)}}
		if items := p.Items.Schema; items.Type == "string" && g.one(2) {
			p.XListType, items.Nullable = new("set"), false
		}
		return p
	case 1:
		item := &apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"a"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": {Type: "string", MaxLength: g.limit(3)}, "b": *g.limited(depth - 1),
		}}
		keys := []string{"a"}
		if g.one(3) {
			item.Properties["a-b"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
			item.Required = append(item.Required, "a-b")
			keys = append(keys, "a-b")
		}
		g.addRules(item, 3)
		return &apiextensionsv1.JSONSchemaProps{
			Type: "array", MaxItems: g.limit(3), XListType: new("map"), XListMapKeys: keys,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: item},
		}
	case 2:
		return &apiextensionsv1.JSONSchemaProps{
			Type: "object", MaxProperties: g.limit(3),
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: g.limited(depth - 1)},
		}
	default:
		return g.limitedObject(depth)
	}
}

func (g generator) limitedObject(depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for range 1 + g.IntN(4) {
		name := pick(g, awkwardNames...)
		p.Properties[name] = *g.limited(depth - 1)
		if g.one(3) && !contains(p.Required, name) {
			p.Required = append(p.Required, name)
		}
	}
	delete(p.Properties, "metadata")
	if g.one(6) {
		p.XPreserveUnknownFields = new(true)
	}
	if g.one(6) {
		p.XEmbeddedResource = true
		p.Properties["kind"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		if g.one(2) {
			meta := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": {Type: "string"}, "labels": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
			}}
			if g.one(2) {
				meta.Properties["generateName"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				p.Properties["apiVersion"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
			g.addRules(&meta, 2)
			p.Properties["metadata"] = meta
		}
	}
	return p
}

// addRules adds rules to a schema, with the probability 1/odds.
func (g generator) addRules(p *apiextensionsv1.JSONSchemaProps, odds int) {
	if !g.one(odds) {
		return
	}
	for range 1 + g.IntN(2) {
		r := apiextensionsv1.ValidationRule{Rule: g.expression(p, "self", 3)}
		if g.one(4) {
			r.Rule = fmt.Sprintf("self == oldSelf || %s", r.Rule)
			if g.one(3) {
				r.Rule = fmt.Sprintf("!oldSelf.hasValue() || oldSelf.value() == self || %s", g.expression(p, "self", 3))
				r.OptionalOldSelf = new(!g.one(6))
			}
		}
		switch g.IntN(6) {
		case 0:
			r.Message = pick(g, "is wrong", "  spaces ", "two\nlines")
		case 1:
			r.MessageExpression = pick(g, "'a' + 'b'", "string(self)", "self", "'x\\ny'", "''", "'é' + string(size([1]))", "string(1/0)", "oldSelf == self ? 'as it was' : 'changed'", "oldSelf.hasValue() ? 'was' : 'is new'")
		}
		if g.one(4) {
			r.Reason = new(pick(g, apiextensionsv1.FieldValueDuplicate, apiextensionsv1.FieldValueForbidden, apiextensionsv1.FieldValueInvalid, apiextensionsv1.FieldValueRequired))
		}
		if g.one(4) {
			r.FieldPath = pick(g, ".a", ".b", "['a-b']", ".a.b", ".x", ".metadata.name", ".spec")
		}
		p.XValidations = append(p.XValidations, r)
	}
}

// expression returns a condition on the value of e with the schema p.
func (g generator) expression(p *apiextensionsv1.JSONSchemaProps, e string, depth int) string {
	if g.one(40) {
		return pick(g, "self", e+".nothing == 1", "(", e+".size()", "1 + 'a' == 2", "oldSelf == 1", "dyn("+e+").a == 'x'", "dyn("+e+")['a-b'] == 1", "'a' in dyn("+e+")")
	}
	if depth > 0 && g.one(5) {
		return fmt.Sprintf("(%s %s %s)", g.expression(p, e, depth-1), pick(g, "&&", "||", "!="), g.expression(p, e, depth-1))
	}
	switch {
	case p.XIntOrString:
		return fmt.Sprintf(pick(g, "%[1]s == 1", "%[1]s == 'x'", "(type(%[1]s) == int ? %[1]s > 1 : %[1]s == 'x')", "%[1]s > 1", "string(%[1]s) == '1'"), e)
	case p.Type == "string" && p.Format == "byte":
		return fmt.Sprintf(pick(g, "%s.size() > 1", "string(%s) == 'x'", "%s == b'x'"), e)
	case p.Type == "string" && p.Format == "duration":
		return fmt.Sprintf(pick(g, "%s > duration('1s')", "%s.getSeconds() == 1"), e)
	case p.Type == "string" && (p.Format == "date" || p.Format == "date-time"):
		return fmt.Sprintf(pick(g, "%s > timestamp('2020-01-01T00:00:00Z')", "%s.getFullYear() == 2021"), e)
	case p.Type == "string":
		return fmt.Sprintf(pick(g, "%s.size() > 1", "%s == 'x'", "%s.matches('^x*$')", "%s.contains('y')", "%s in ['x', 'y']", "%[1]s + %[1]s != 'xx'",
			"%s.find('[a-z]') == 'x'", "%s.upperAscii() == 'X'", "isURL(%s)", "%s.split(',').size() == 1", "!format.dns1123Label().validate(%s).hasValue()", "isQuantity(%s)"), e)
	case p.Type == "integer":
		return fmt.Sprintf(pick(g, "%s > 1", "%s == 2", "%s + 1 < 4", "%[1]s / (%[1]s - 1) == 1", "%s < 2.5", "[1, 2].exists(i, i == %s)"), e)
	case p.Type == "number":
		return fmt.Sprintf(pick(g, "%s > 1.0", "%s == 2.0", "%s <= 2", "int(%s) == 1"), e)
	case p.Type == "boolean":
		return fmt.Sprintf(pick(g, "%s", "!%s"), e)
	case p.Type == "array":
		return g.listExpression(p.Items.Schema, e, depth)
	case p.Type == "object" && p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		v := fmt.Sprintf("k%d", g.IntN(1000))
		return pick(g,
			fmt.Sprintf("%s.size() < 2", e),
			fmt.Sprintf("%s.all(%s, %s != 'a')", e, v, v),
			fmt.Sprintf("%s.exists(%s, %s)", e, v, g.expression(p.AdditionalProperties.Schema, e+"["+v+"]", depth-1)),
			fmt.Sprintf("%s['a'] == %s['b']", e, e),
			fmt.Sprintf("('a' in %s && %s)", e, g.expression(p.AdditionalProperties.Schema, e+"['a']", depth-1)),
			fmt.Sprintf("%s == {}", e),
			fmt.Sprintf("%s.all(%s, w, %s)", e, v, g.expression(p.AdditionalProperties.Schema, "w", depth-1)),
		)
	case p.Type == "object":
		return g.fieldExpression(p, e, depth)
	default:
		return fmt.Sprintf("%s == %s", e, e)
	}
}

func (g generator) listExpression(items *apiextensionsv1.JSONSchemaProps, e string, depth int) string {
	v := fmt.Sprintf("v%d", g.IntN(1000))
	inner := g.expression(items, v, depth-1)
	return pick(g,
		fmt.Sprintf("%s.size() < 2", e),
		fmt.Sprintf("%s.all(%s, %s)", e, v, inner),
		fmt.Sprintf("%s.exists_one(%s, %s)", e, v, inner),
		fmt.Sprintf("%s.filter(%s, %s).size() > 0", e, v, inner),
		fmt.Sprintf("%s.map(%s, %s) == %s", e, v, v, e),
		fmt.Sprintf("%s + %s == %s", e, e, e),
		fmt.Sprintf("(%s + %s).size() == %s.size()", e, e, e),
		fmt.Sprintf("(%s + %s) + %s == %s", e, e, e, e),
		fmt.Sprintf("%s.all(%s, %s in %s)", e, v, v, e),
		fmt.Sprintf("%s[0] == %s[1]", e, e),
		fmt.Sprintf("%s.isSorted()", e),
		fmt.Sprintf("%s == []", e),
		fmt.Sprintf("%s.indexOf(%s[0]) == 0", e, e),
		fmt.Sprintf("%s.exists(%s, %s.exists(w, w == %s))", e, v, e, v),
		fmt.Sprintf("sets.contains(%s, %s)", e, e),
		fmt.Sprintf("%s.join(',') == 'x'", e),
		fmt.Sprintf("%s.distinct().size() == 1", e),
		fmt.Sprintf("%s.all(i, w, i < 2)", e),
	)
}

func (g generator) fieldExpression(p *apiextensionsv1.JSONSchemaProps, e string, depth int) string {
	names := sortedProperties(p)
	if p.XEmbeddedResource || e == "self" && g.one(8) {
		names = append(names, "metadata")
	}
	if len(names) == 0 {
		return e + " == " + e
	}
	name := pick(g, names...)
	sub, ok := p.Properties[name]
	if !ok {
		return e + ".metadata.name == 'x'"
	}
	escaped, ok := apiservercel.Escape(name)
	if !ok {
		return e + " == " + e
	}
	if g.one(4) {
		escaped = name
	}
	field := e + "." + escaped
	inner := g.expression(&sub, field, depth-1)
	return pick(g,
		fmt.Sprintf("(has(%s) && %s)", field, inner),
		fmt.Sprintf("(!has(%s) || %s)", field, inner),
		fmt.Sprintf("(has(%s) ? %s : true)", field, inner),
		inner,
		fmt.Sprintf("%s.?%s.hasValue()", e, escaped),
		fmt.Sprintf("%s == %s", field, field),
		fmt.Sprintf("%s.?%s.orValue(%s) == %s", e, escaped, field, field),
	)
}

func sortedProperties(p *apiextensionsv1.JSONSchemaProps) []string {
	m := map[string]any{}
	for name := range p.Properties {
		m[name] = nil
	}
	return sortedKeys(m)
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// fits returns a valid value of p.
func (g generator) fits(p *apiextensionsv1.JSONSchemaProps) any {
	if p.Nullable && g.one(5) {
		return nil
	}
	switch {
	case p.XIntOrString:
		return pick(g, any(int64(1)), any("x"), any("1"))
	case p.Type == "string":
		switch p.Format {
		case "byte":
			return pick(g, "eA==", "", "eHk=", "!")
		case "date":
			return pick(g, "2021-02-03", "x")
		case "date-time":
			return pick(g, "2021-02-03T04:05:06Z", "2019-02-03T04:05:06.5+02:00", "x")
		case "duration":
			return pick(g, "1s", "2h", "1 day", "x")
		}
		return pick(g, "", "x", "y", "xx", "é", "1", "x,y")
	case p.Type == "integer":
		return int64(g.IntN(4))
	case p.Type == "number":
		return pick(g, any(int64(2)), any(1.5), any(2.0))
	case p.Type == "boolean":
		return g.one(2)
	case p.Type == "array":
		list := make([]any, g.IntN(4))
		for i := range list {
			list[i] = g.fits(p.Items.Schema)
		}
		return list
	case p.Type == "object":
		out := map[string]any{}
		if a := p.AdditionalProperties; a != nil && a.Schema != nil {
			for range g.IntN(4) {
				out[pick(g, "a", "b", "c")] = g.fits(a.Schema)
			}
		}
		for _, name := range sortedProperties(p) {
			if sub := p.Properties[name]; !g.one(4) {
				out[name] = g.fits(&sub)
			}
		}
		if p.XPreserveUnknownFields != nil && g.one(2) {
			out["unknown"] = pick(g, any("x"), any(int64(1)), any([]any{}))
		}
		return out
	default:
		return g.anything(2)
	}
}
