package conversion

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/jsonpatch"
)

// A path leads through the fields of objects.
type path []string

// parsePath parses a path such as spec.replicas.
func parsePath(text string) (path, error) {
	p := path(strings.Split(text, "."))
	if slices.Contains(p, "") {
		return nil, fmt.Errorf("must be a path of fields, such as spec.replicas")
	}
	if p[0] == "apiVersion" || p[0] == "kind" {
		return nil, fmt.Errorf("the server sets this field")
	}
	return p, nil
}

// pointer returns the path of a JSON pointer.
func pointer(text string) path {
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return nil
	}
	return jsonpatch.Elements(text)
}

func (p path) String() string { return strings.Join(p, ".") }

// field returns the path in the form of errors.
func (p path) field() *field.Path { return field.NewPath(p[0], p[1:]...) }

// has reports whether the field, or one of its parents, is at q.
func (p path) has(q path) bool { return len(q) <= len(p) && slices.Equal(p[:len(q)], q) }

// get returns the value at the path.
func (p path) get(obj object.Tree) (any, bool) {
	last := len(p) - 1
	for _, name := range p[:last] {
		next, ok := obj[name].(object.Tree)
		if !ok {
			return nil, false
		}
		obj = next
	}
	v, ok := obj[p[last]]
	return v, ok
}

// set sets the value at the path, and creates missing parents.
func (p path) set(obj object.Tree, value any) error {
	last := len(p) - 1
	for i, name := range p[:last] {
		next, ok := obj[name].(object.Tree)
		if !ok {
			if v, exists := obj[name]; exists && v != nil {
				return field.Invalid(p[:i+1].field(), v, fmt.Sprintf("must be an object: the conversion rules set %s", p))
			}
			next = object.Tree{}
			obj[name] = next
		}
		obj = next
	}
	obj[p[last]] = value
	return nil
}

// take removes the field, and then the parents that it left empty.
func (t taken) take(obj object.Tree) { t.removeFrom(obj, 0) }

func (t taken) removeFrom(obj object.Tree, at int) {
	name := t.path[at]
	if at == len(t.path)-1 {
		delete(obj, name)
		return
	}
	next, ok := obj[name].(object.Tree)
	if !ok || len(next) == 0 {
		return
	}
	t.removeFrom(next, at+1)
	if len(next) == 0 && at >= t.keep {
		delete(obj, name)
	}
}

// schemaAt returns the schema of a field.
func schemaAt(schema *v1.JSONSchemaProps, p path) (*v1.JSONSchemaProps, error) {
	for i, name := range p {
		next, ok := schema.Properties[name]
		if !ok {
			if i == 0 {
				return nil, fmt.Errorf("there is no field %q", name)
			}
			return nil, fmt.Errorf("there is no field %q in %s", name, p[:i])
		}
		schema = &next
	}
	return schema, nil
}

// keptOf returns the number of leading parents of a field that a schema has.
func keptOf(schema *v1.JSONSchemaProps, p path) int {
	for i, name := range p[:len(p)-1] {
		next, ok := schema.Properties[name]
		if !ok {
			return i
		}
		schema = &next
	}
	return len(p) - 1
}
