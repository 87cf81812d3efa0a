package structural

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// A node is the compiled schema of one place in an object. Nodes of a finished program are immutable,
// and those of Go types may form cycles.
type node struct {
	properties map[string]*node
	items      *node
	additional *node // of fields that are not properties; nil for no schema
	open       bool  // unknown fields are preserved

	preserve bool // x-kubernetes-preserve-unknown-fields
	embedded bool // x-kubernetes-embedded-resource
	nullable bool

	closed bool // fields that are not properties are invalid

	accepts kinds   // the kinds of values that are of the type
	typed   string  // the type as messages show it
	limits  *limits // further constraints of values; nil for none

	listType string   // x-kubernetes-list-type, if it is set or map
	mapKeys  []string // x-kubernetes-list-map-keys
	// merges reports whether this place or one below it is a set or a map list.
	merges bool

	// def is the default value, complete with the defaults below it; nil is none.
	def any
	// defaulted are the properties that have a default, by name.
	defaulted []string

	// embeds reports whether this place or one below it is an embedded object.
	embeds bool
}

// child returns the schema of a field, or nil.
func (n *node) child(name string) *node {
	if c := n.properties[name]; c != nil {
		return c
	}
	return n.additional
}

// compile compiles the schema of a custom resource.
func compile(props *apiextensionsv1.JSONSchemaProps) (*node, error) {
	if props == nil {
		return nil, nil
	}
	root, err := (&builder{}).build(props)
	if err != nil {
		return nil, err
	}
	if err := root.completeDefaults(root, nil); err != nil {
		return nil, err
	}
	return root, nil
}

func (b *builder) build(props *apiextensionsv1.JSONSchemaProps) (*node, error) {
	if err := jsonschema.SupportedItself(props); err != nil {
		return nil, err
	}
	n := &node{
		preserve: props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields,
		embedded: props.XEmbeddedResource,
		nullable: props.Nullable,
		embeds:   props.XEmbeddedResource,
	}
	if err := b.constrain(n, props); err != nil {
		return nil, err
	}
	if t := props.XListType; t != nil && (*t == listSet || *t == listMap) {
		n.listType, n.mapKeys, n.merges = *t, props.XListMapKeys, true
	}
	if props.Default != nil {
		if err := utiljson.Unmarshal(props.Default.Raw, &n.def); err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
	}
	sub := func(p *apiextensionsv1.JSONSchemaProps) (*node, error) {
		c, err := b.build(p)
		if err == nil {
			n.embeds = n.embeds || c.embeds
			n.merges = n.merges || c.merges
		}
		return c, err
	}
	var err error
	if props.Items != nil && props.Items.Schema != nil {
		if n.items, err = sub(props.Items.Schema); err != nil {
			return nil, err
		}
	}
	if a := props.AdditionalProperties; a != nil {
		n.open, n.closed = true, !a.Allows && (b.junctors == 0 || !b.ofDefaults)
		if a.Schema != nil {
			if n.additional, err = sub(a.Schema); err != nil {
				return nil, err
			}
		}
	}
	if len(props.Properties) == 0 {
		return n, nil
	}
	n.properties = make(map[string]*node, len(props.Properties))
	for name := range props.Properties {
		p := props.Properties[name]
		if n.properties[name], err = sub(&p); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// defaultedProperties returns the names of the properties that have a default.
func (n *node) defaultedProperties() []string {
	var names []string
	for name, p := range n.properties {
		if p.def != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
