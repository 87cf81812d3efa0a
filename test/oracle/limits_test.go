package oracle

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

var (
	formatNames = []string{
		"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10",
		"isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time",
		"k8s-short-name", "k8s-long-name", "int32", "int64", "float", "double", "int-32", "date--time", "unknown",
	}
	strange = []any{
		"", "x", "xy", "ab12", "ÄÖÜ", "\xff\xfe", "http://a.b/c", "/a", "a@b.c", "a.b.c", "A-b", "1.2.3.4", "01.2.3.4", "::1", "1.2.3.0/24", "fe80::/10",
		"00:11:22:33:44:55", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "507f1f77bcf86cd799439011", "0321751043", "978-0321751041",
		"4111111111111111", "123-45-6789", "#fff", "rgb(255,255,255)", "YWJj", "YQ==", "YWI=", "YQ", "=", "2026-02-28", "2026-02-30", "22 ns", "1h", "3 weeks",
		"2026-01-02T03:04:05Z", "2026-01-02t03:04:05z", "2026-01-02T03:04:05.123+01:00", "2026-01-02T24:04:05Z", "a-b", "-a",
		int64(0), int64(1), int64(2), int64(3), int64(65), int64(-1), int64(1 << 31), int64(-1 << 31), int64(1 << 53), int64(1<<63 - 1), int64(-1 << 63),
		1.0, 1.5, -1.5, 0.1, 0.3, 2.0, 65.0, 1 + 1e-12, 1e20, 1e38, 4e38, 1e308, -9223372036854775808.0, 9223372036854774784.0, 2147483648.0, 5e-324,
		true, false, nil,
	}
	patterns = []string{"^[a-z]+$", "^$", "x", "^.{2,4}$", "[0-9]", `^\pL*$`}
	bounds   = []float64{0, 1, 2, 3, -1, 1.5, 0.1, 0.5, 1e20, 4e38, 1 << 31, 1 << 53, 1 << 63, -(1 << 63)}
)

// restrict adds random limits to a schema.
func (g generator) restrict(p *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := p.Properties[name]
		g.restrict(&sub)
		p.Properties[name] = sub
	}
	if p.Items != nil && p.Items.Schema != nil {
		g.restrict(p.Items.Schema)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		g.restrict(p.AdditionalProperties.Schema)
	}
	if p.Type == "array" && g.one(2) {
		g.merged(p)
	}
	if g.one(2) {
		g.bound(p)
	}
	if g.one(6) {
		g.junctor(p, 2)
	}
}

// merged makes a list a set or a map.
func (g generator) merged(p *apiextensionsv1.JSONSchemaProps) {
	if g.one(3) {
		p.XListType = new("set")
		return
	}
	if g.one(6) {
		p.XListType = new("atomic")
		return
	}
	p.XListType = new("map")
	p.XListMapKeys = []string{"a"}
	if g.one(3) {
		p.XListMapKeys = append(p.XListMapKeys, "b")
	}
	items := p.Items.Schema
	if items.Properties == nil && !g.one(5) {
		*items = *g.object(1)
		items.AdditionalProperties = nil
		if items.Properties == nil {
			items.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		for _, k := range p.XListMapKeys {
			items.Properties[k] = apiextensionsv1.JSONSchemaProps{Type: pick(g, "string", "integer", "number", "boolean")}
		}
	}
}

// bound adds a few limits to one schema.
func (g generator) bound(p *apiextensionsv1.JSONSchemaProps) {
	size := func() *int64 { return new(int64(g.IntN(4))) }
	for range 1 + g.IntN(3) {
		switch g.IntN(15) {
		case 0:
			p.Minimum, p.ExclusiveMinimum = new(pick(g, bounds...)), g.one(2)
		case 1:
			p.Maximum, p.ExclusiveMaximum = new(pick(g, bounds...)), g.one(2)
		case 2:
			p.MultipleOf = new(pick(g, bounds...))
		case 3:
			p.MinLength = size()
		case 4:
			p.MaxLength = size()
		case 5:
			p.Pattern = pick(g, patterns...)
		case 6:
			p.MinItems = size()
		case 7:
			p.MaxItems = size()
		case 8:
			p.MinProperties = size()
		case 9:
			p.MaxProperties = size()
		case 10:
			p.Required = append(p.Required, pick(g, fieldNames...))
		case 11:
			p.Enum = nil
			for range 1 + g.IntN(3) {
				p.Enum = append(p.Enum, *asJSON(g.enumerable()))
			}
		case 12:
			p.UniqueItems = g.one(4)
		default:
			p.Format = pick(g, formatNames...)
		}
	}
}

func (g generator) enumerable() any {
	for {
		v := pick(g, strange...)
		if s, ok := v.(string); !ok || s != "\xff\xfe" {
			return v
		}
	}
}

// junctor adds an allOf, anyOf, oneOf or not.
func (g generator) junctor(p *apiextensionsv1.JSONSchemaProps, depth int) {
	var list []apiextensionsv1.JSONSchemaProps
	for range 1 + g.IntN(3) {
		list = append(list, g.alternative(p, depth))
	}
	switch g.IntN(5) {
	case 0:
		p.AllOf = list
	case 1, 2:
		p.AnyOf = list
	case 3:
		p.OneOf = list
	default:
		p.Not = &list[0]
	}
}

// alternative returns a schema for a junctor over the fields of p.
func (g generator) alternative(p *apiextensionsv1.JSONSchemaProps, depth int) apiextensionsv1.JSONSchemaProps {
	out := apiextensionsv1.JSONSchemaProps{}
	if g.one(8) {
		out.Type = pick(g, "string", "integer", "number", "object", "array", "boolean")
	}
	if g.one(12) {
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: false}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		if !g.one(2) {
			continue
		}
		sub := p.Properties[name]
		if out.Properties == nil {
			out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		out.Properties[name] = g.alternative(&sub, depth-1)
	}
	if p.Items != nil && p.Items.Schema != nil && g.one(2) {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(g.alternative(p.Items.Schema, depth-1))}
	}
	if g.one(2) {
		g.bound(&out)
	}
	if depth > 0 && g.one(4) {
		g.junctor(&out, depth-1)
	}
	return out
}

// scatter changes a random part of a value of a schema, and returns it.
func (g generator) scatter(p *apiextensionsv1.JSONSchemaProps, v any) any {
	if g.one(8) {
		return pick(g, strange...)
	}
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		switch {
		case len(names) == 0 || g.one(10):
			v[pick(g, fieldNames...)] = pick(g, strange...)
		case g.one(10):
			delete(v, pick(g, names...))
		default:
			name := pick(g, names...)
			v[name] = g.scatter(p, v[name])
		}
		return v
	case []any:
		switch {
		case len(v) == 0:
			return append(v, pick(g, strange...))
		case g.one(4):
			return append(v, v[g.IntN(len(v))])
		case g.one(8):
			slices.Reverse(v)
			return v
		case g.one(8):
			return v[1:]
		}
		i := g.IntN(len(v))
		v[i] = g.scatter(p, v[i])
		return v
	}
	return pick(g, strange...)
}
