package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/util/jsonpath"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/view"
)

// CheckPath returns an error if Cell does not support the jsonPath of a printer column.
func CheckPath(path string) error {
	if _, ok := plainPath(path); ok {
		return nil
	}
	_, err := parsePath(path)
	return err
}

func parsePath(path string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New("column").AllowMissingKeys(true)
	if err := p.Parse("{" + path + "}"); err != nil {
		return nil, fmt.Errorf("unrecognized column definition %q", path)
	}
	return p, nil
}

// Cell returns a function that computes the cell of a printer column from its jsonPath and its
// type: integer, number, string, boolean or date. A value that is missing, or of another type, is
// nil. The path is parsed on the first call; a path that CheckPath rejects yields nil.
func Cell(path, typ string) func(obj map[string]any) any {
	if names, ok := plainPath(path); ok {
		return func(obj map[string]any) any {
			if v, ok := walk(obj, names); ok {
				return cell(typ, v)
			}
			return nil
		}
	}
	find := func(obj map[string]any) any { return found(parsePath(path))(typ, obj) }
	if strings.Contains(path, "range") {
		return find // a path with a range keeps state: it is parsed for each use
	}
	compiled := sync.OnceValue(func() func(string, object.Tree) any { return found(parsePath(path)) })
	return func(obj map[string]any) any { return compiled()(typ, obj) }
}

// plainPath returns the names in a path like .spec.size.
func plainPath(path string) ([]string, bool) {
	rest, ok := strings.CutPrefix(path, ".")
	if !ok {
		return nil, false
	}
	names := strings.Split(rest, ".")
	for _, name := range names {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			return nil, false
		}
	}
	return names, true
}

func walk(t object.Tree, names []string) (v any, ok bool) {
	v = t
	for _, name := range names {
		t, ok := v.(object.Tree)
		if !ok {
			return nil, false
		}
		if v, ok = t[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// found returns a function that evaluates a parsed path. It uses the first result.
func found(p *jsonpath.JSONPath, err error) func(typ string, obj object.Tree) any {
	if err != nil {
		return func(string, object.Tree) any { return nil }
	}
	return func(typ string, obj object.Tree) any {
		results, err := p.FindResults(obj)
		if err != nil || len(results) == 0 || len(results[0]) == 0 {
			return nil
		}
		v := results[0][0].Interface()
		switch v.(type) {
		case nil, bool, int64, float64, string, object.Tree, []any:
			return cell(typ, v)
		}
		// A literal in the path, or a part of a string, has another type.
		if typ != "string" {
			return nil
		}
		var out bytes.Buffer
		if err := p.PrintResults(&out, []reflect.Value{reflect.ValueOf(v)}); err != nil {
			return nil
		}
		return out.String()
	}
}

// cell converts a value to the type of a column.
func cell(typ string, v any) any {
	switch typ {
	case "string":
		return cellText(v)
	case "integer":
		switch v := v.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
	case "number":
		switch v := v.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b
		}
	case "date":
		if s, ok := v.(string); ok {
			return view.Age(s)
		}
	}
	return nil
}

// cellText formats a value for people.
func cellText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case object.Tree, []any:
		return string(object.AppendJSON(nil, v))
	case nil:
		return "<no value>"
	default:
		return fmt.Sprint(v)
	}
}
