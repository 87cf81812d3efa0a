package generate

import (
	"strings"
)

// value returns a value that a schema often allows.
func (g *G) value(s *Schema, depth int) any {
	switch {
	case s == nil || depth > 6:
		return g.anything(depth)
	case s.Nullable && g.chance(6):
		return nil
	case len(s.Enum) > 0 && !g.chance(12):
		return one(g, s.Enum...)
	case s.IntOrString || s.Format == "int-or-string":
		return one[any](g, 1, 80, "10%", "x", "5")
	}
	switch s.Type {
	case "object":
		return g.objectValue(s, depth)
	case "array":
		n := g.IntN(3)
		if s.MaxItems != nil && g.chance(10) {
			n = min(*s.MaxItems+1, 20)
		}
		out := make([]any, n)
		for i := range out {
			out[i] = g.value(s.Items, depth+1)
		}
		return out
	case "boolean":
		return g.chance(2)
	case "integer":
		return g.integer(s)
	case "number":
		return one[any](g, 0, 1, 1.5, -2, raw("1.0"), raw("1e3"), 0.1, raw("0.30000000000000004"), raw("12345678901234567890"))
	case "string":
		return g.word(s.Format)
	}
	return g.anything(depth)
}

func (g *G) objectValue(s *Schema, depth int) any {
	out := map[string]any{}
	for _, name := range s.names {
		if in(s.Required, name) && !g.chance(20) || g.chance(3+depth) {
			out[name] = g.value(s.Properties[name], depth+1)
		}
	}
	if s.Additional != nil {
		for range g.IntN(3) {
			out[g.name()] = g.value(s.Additional, depth+1)
		}
	}
	if s.Preserve && g.chance(2) {
		out[g.name()] = g.anything(depth + 1)
	}
	return out
}

func in(list []string, name string) bool {
	for _, e := range list {
		if e == name {
			return true
		}
	}
	return false
}

func (g *G) integer(s *Schema) any {
	switch {
	case s.Minimum != nil && g.chance(4):
		return int64(*s.Minimum) - int64(g.IntN(2))
	case s.Maximum != nil && g.chance(4):
		return int64(*s.Maximum) + int64(g.IntN(2))
	}
	return one[any](g, 0, 1, 2, 7, 80, 100, -1, 65535, 65536, 2147483647, 2147483648, raw("9223372036854775807"))
}

// word returns a text in a format.
func (g *G) word(format string) any {
	switch format {
	case "date-time":
		return one(g, "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.123456Z", "2020-01-02T03:04:05+02:00", "2020-01-02", "x", "0001-01-01T00:00:00Z", "2020-01-02t03:04:05z")
	case "date":
		return one(g, "2020-01-02", "2020-13-02", "x")
	case "byte":
		return one(g, "AAEC", "", "AA", "!!", "AAEC\n", "_-8=")
	case "duration":
		return one(g, "1h", "90s", "1.5h", "x", "", "1d")
	case "ipv4":
		return one(g, "10.0.0.1", "010.0.0.1", "::1", "x")
	case "uuid":
		return one(g, "01234567-89ab-cdef-0123-456789abcdef", "x")
	case "email":
		return one(g, "a@example.com", "x")
	}
	return g.name()
}

// name returns a valid or slightly invalid name.
func (g *G) name() string {
	switch g.IntN(10) {
	case 0:
		return one(g, "", " ", "A", "a_b", "a.b", "a/b", "-a", "a-", "a..b", "é", "日本", "a b", "\u0000", "\u2028", "<&>", "\"q\"", "'", "\\")
	case 1:
		return strings.Repeat("x", one(g, 63, 64, 253, 254, 300))
	case 2:
		return one(g, "10.1.2.3", "example.com", "http://example.com", "2020-01-02T03:04:05Z", "100m", "1Gi", "true", "1", "null", "TCP", "ClusterIP", "IPv4")
	}
	return one(g, "a", "b", "c", "one", "two", "example.com/a", "spec", "metadata")
}

// anything returns a value of any type.
func (g *G) anything(depth int) any {
	if depth > 8 {
		return nil
	}
	switch g.IntN(9) {
	case 0:
		return nil
	case 1:
		return g.chance(2)
	case 2:
		return one[any](g, 0, 1, -1, raw("1.0"), raw("1e2"), raw("-0"), raw("-0.0"), raw("9007199254740993"), raw("9223372036854775808"), raw("1.7976931348623157e308"), raw("1e400"), raw("0.1"), raw("123456789.123456789"))
	case 3:
		return map[string]any{}
	case 4:
		return []any{}
	case 5:
		return map[string]any{g.name(): g.anything(depth + 1), g.name(): g.anything(depth + 1)}
	case 6:
		return []any{g.anything(depth + 1), g.anything(depth + 1)}
	}
	return g.name()
}
