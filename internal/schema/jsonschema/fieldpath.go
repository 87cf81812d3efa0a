package jsonschema

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	errNoSuchField = errors.New("does not refer to a valid field")
	errPathEnds    = errors.New("unexpected end of JSON path")
)

// FollowPath returns the schema at the end of a path like .spec.color or, with brackets,
// .spec['color'], and the path in the form of errors. A path through a map takes any key. The schema
// is nil inside of a map of arbitrary values.
func FollowPath(path string, props *apiextensionsv1.JSONSchemaProps, brackets bool) (where *field.Path, found *apiextensionsv1.JSONSchemaProps, err error) {
	for path != "" {
		var name string
		switch {
		case path[0] == '.':
			if path = path[1:]; path == "" {
				return nil, nil, errPathEnds
			}
			name = pathToken(path)
			path = path[len(name):]
		case path[0] == '[' && !brackets:
			return nil, nil, errors.New("array notation is not allowed")
		case path[0] == '[':
			if name, path, err = bracketed(path[1:]); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, fmt.Errorf("expected [ or . but got: %s", pathToken(path))
		}
		switch {
		case props != nil && len(props.Properties) > 0:
			p, ok := props.Properties[name]
			if !ok {
				return nil, nil, errNoSuchField
			}
			where, props = where.Child(name), &p
		case props != nil && props.AdditionalProperties != nil:
			where, props = where.Key(name), props.AdditionalProperties.Schema
		default:
			return nil, nil, errNoSuchField
		}
	}
	return where, props, nil
}

// bracketed reads what follows an opening bracket.
func bracketed(path string) (name, rest string, err error) {
	if path == "" {
		return "", "", errPathEnds
	}
	tok := pathToken(path)
	if len(tok) < 2 || tok[0] != '\'' || tok[len(tok)-1] != '\'' {
		return "", "", fmt.Errorf("expected single quoted string but got %s", tok)
	}
	if name, err = unquotePath(tok[1 : len(tok)-1]); err != nil {
		return "", "", fmt.Errorf("invalid string literal: %w", err)
	}
	rest = path[len(tok):]
	if rest == "" {
		return "", "", errPathEnds
	}
	if next := pathToken(rest); next != "]" {
		return "", "", fmt.Errorf("expected ] but got %s", next)
	}
	return name, rest[1:], nil
}

// pathToken returns a quoted string, the text before the next delimiter, or the
// delimiter.
func pathToken(path string) string {
	if path[0] == '\'' {
		for i := 1; i < len(path); i++ {
			if path[i] == '\'' && path[i-1] != '\\' {
				return path[:i+1]
			}
		}
		return path
	}
	switch i := strings.IndexAny(path, ".[]"); {
	case i > 0:
		return path[:i]
	case i == 0:
		return path[:1]
	default:
		return path
	}
}

// unquotePath resolves the escapes of a quoted string.
func unquotePath(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		at := strings.IndexByte(`abfnrtv'\`, s[i])
		if at < 0 {
			return "", fmt.Errorf("invalid escape char %s", s[i-1:i+1])
		}
		b.WriteByte("\a\b\f\n\r\t\v'\\"[at])
	}
	return b.String(), nil
}
