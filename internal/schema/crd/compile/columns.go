package compile

import (
	"fmt"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/view"
)

// ageColumns are the columns of a version that declares none. All such versions
// share them.
var ageColumns = sync.OnceValue(func() []view.Column { return []view.Column{codec.AgeColumn()} })

// columns returns what returns the columns of a version.
func columns(in []v1.CustomResourceColumnDefinition) func() []view.Column {
	if len(in) == 0 {
		return ageColumns
	}
	return sync.OnceValue(func() []view.Column { return compileColumns(in) })
}

func compileColumns(in []v1.CustomResourceColumnDefinition) []view.Column {
	out := make([]view.Column, len(in))
	for i := range in {
		c := &in[i]
		if codec.CheckPath(c.JSONPath) != nil {
			return out[:i] // as in Kubernetes, the parts before it are shown
		}
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		out[i] = view.Column{
			Name: c.Name, Type: c.Type, Format: c.Format,
			Description: description, Priority: c.Priority,
			Cell: codec.Cell(c.JSONPath, c.Type),
		}
	}
	return out
}

// compileSelectable returns the fields that a field selector may name. A field
// that an object does not have is "".
func compileSelectable(in []v1.SelectableField) map[string]func(obj map[string]any) string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]func(obj map[string]any) string, len(in))
	for _, f := range in {
		keys := pathKeys(f.JSONPath)
		out[trimDot(f.JSONPath)] = func(obj map[string]any) string { return fieldText(obj, keys) }
	}
	return out
}

// fieldText returns the value at the end of a path in the form of field selectors.
func fieldText(obj map[string]any, keys []string) string {
	var v any = obj
	for _, key := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[key]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func trimDot(path string) string {
	if len(path) > 0 && path[0] == '.' {
		return path[1:]
	}
	return path
}

// pathKeys splits a path of fields, as in .spec.color or .spec['a.b'].
func pathKeys(path string) []string {
	var keys []string
	for len(path) > 0 {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			key, rest := bracketed(path)
			keys, path = append(keys, key), rest
		default:
			end := 0
			for end < len(path) && path[end] != '.' && path[end] != '[' {
				end++
			}
			keys, path = append(keys, path[:end]), path[end:]
		}
	}
	return keys
}

// bracketed splits ['key'] off the start of a path.
func bracketed(path string) (key, rest string) {
	if len(path) < 4 || path[1] != '\'' && path[1] != '"' {
		return path, ""
	}
	for i := 2; i+1 < len(path); i++ {
		if path[i] == path[1] && path[i+1] == ']' {
			return path[2:i], path[i+2:]
		}
	}
	return path, ""
}
