package celrule

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// A kind is the CEL kind of the values of a place.
type kind uint8

const (
	noKind kind = iota // without a CEL type
	objectKind
	listKind
	stringKind
	bytesKind
	durationKind
	dateKind
	dateTimeKind
	boolKind
	numberKind
	integerKind
	intOrStringKind
)

// A node is a place in a schema as expressions see it. Built nodes are immutable, except for the
// programs, which are created at their first use.
type node struct {
	kind     kind
	typeName string // in the schema's spelling
	nullable bool
	preserve bool
	embedded bool

	properties map[string]*node // nil where the schema has none
	items      *node
	additional *node
	listType   string
	mapKeys    []string // x-kubernetes-list-map-keys
	// escapedKeys are mapKeys as expressions name them.
	escapedKeys []string

	// typed reports whether expressions can access the place.
	typed bool
	// fields are the properties by their names in lookups.
	fields map[string]fieldOf
	// size is the maximum number of elements, entries or bytes of a value, 0 for values without a
	// size.
	size int64
	// unlimited is the keyword that would limit size, "" for a limited one.
	unlimited string
	// least is the length in bytes of the shortest JSON of a value.
	least int64

	hasDefault bool

	// resource is the node with the fields that every object has, for the root
	// of a resource. Nil for other places.
	resource *node
	// selfType is the type of self if that is neither the node nor its resource: inside the metadata
	// of a resource.
	selfType *node

	rules []*rule
	// ruled reports rules of the node or below it.
	ruled bool
	// ruledFields are the properties with rules in them, in order.
	ruledFields              []fieldOf
	ruledItems, ruledEntries *node

	sum sum
	// programs of the rules, nil where there are none.
	programs *programs
}

// fieldOf is a property of a node.
type fieldOf struct {
	name string
	node *node
	// declared reports whether the field has this name in checked expressions.
	declared bool
}

// declared returns the node of a field that checked expressions can name, or
// nil.
func (n *node) declared(name string) *node {
	if f := n.fields[name]; f.declared {
		return f.node
	}
	return nil
}

// seen is the node that values are read with, from outside.
func (n *node) seen() *node {
	if n.embedded && n.resource != nil {
		return n.resource
	}
	return n
}

// self is the node of a place with rules: the value that they speak of.
func (n *node) self() *node {
	if n.resource != nil {
		return n.resource
	}
	return n
}

// typedAs returns the node that determines the type of self.
func (n *node) typedAs() *node {
	if n.selfType != nil {
		return n.selfType
	}
	return n.self()
}

// A builder builds nodes from schemas.
type builder struct{ shared *Shared }

// root builds the root of a resource.
func (b builder) root(props *apiextensionsv1.JSONSchemaProps) (*node, error) {
	return b.build(props, true)
}

func (b builder) build(p *apiextensionsv1.JSONSchemaProps, root bool) (*node, error) {
	n := &node{
		typeName: p.Type,
		nullable: p.Nullable,
		preserve: p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields,
		embedded: p.XEmbeddedResource,
		mapKeys:  p.XListMapKeys,
	}
	if p.XListType != nil {
		n.listType = *p.XListType
	}
	n.escapedKeys = escapeAll(n.mapKeys)
	n.kind = kindOf(p)
	if p.Default != nil {
		var value any
		if err := utiljson.Unmarshal(p.Default.Raw, &value); err != nil {
			return nil, err
		}
		n.hasDefault = value != nil
	}
	if err := b.below(n, p); err != nil {
		return nil, err
	}
	if root || p.XEmbeddedResource {
		n.resource = n.withMetadata(p)
	}
	n.measure(p)
	for i := range p.XValidations {
		n.rules = append(n.rules, newRule(&p.XValidations[i], p))
	}
	n.findRules()
	n.sum = n.hash(root)
	return b.shared.node(n), nil
}

// below builds the nodes below n.
func (b builder) below(n *node, p *apiextensionsv1.JSONSchemaProps) (err error) {
	if p.Items != nil && p.Items.Schema != nil {
		if n.items, err = b.build(p.Items.Schema, false); err != nil {
			return err
		}
	}
	if a := p.AdditionalProperties; a != nil && a.Schema != nil {
		if n.additional, err = b.build(a.Schema, false); err != nil {
			return err
		}
	}
	if len(p.Properties) == 0 {
		return nil
	}
	n.properties = make(map[string]*node, len(p.Properties))
	for name := range p.Properties {
		sub := p.Properties[name]
		if n.properties[name], err = b.build(&sub, false); err != nil {
			return err
		}
	}
	return nil
}

func kindOf(p *apiextensionsv1.JSONSchemaProps) kind {
	if p.XIntOrString {
		return intOrStringKind
	}
	switch p.Type {
	case "object":
		return objectKind
	case "array":
		return listKind
	case "boolean":
		return boolKind
	case "number":
		return numberKind
	case "integer":
		return integerKind
	case "string":
		switch p.Format {
		case "byte":
			return bytesKind
		case "duration":
			return durationKind
		case "date":
			return dateKind
		case "date-time":
			return dateTimeKind
		}
		return stringKind
	}
	return noKind
}

// withMetadata returns n with the fields that expressions can read of every resource. It may return n
// itself.
func (n *node) withMetadata(p *apiextensionsv1.JSONSchemaProps) *node {
	isString := func(c *node) bool { return c != nil && c.typeName == "string" }
	meta := n.properties["metadata"]
	if isString(n.properties["kind"]) && isString(n.properties["apiVersion"]) && meta != nil && meta.typeName == "object" &&
		isString(meta.properties["name"]) && isString(meta.properties["generateName"]) {
		return n
	}
	r := *n
	r.properties = make(map[string]*node, len(n.properties)+3)
	for name, c := range n.properties {
		r.properties[name] = c
	}
	r.properties["kind"], r.properties["apiVersion"] = newString(nil), newString(nil)
	names := func(name string, limit int64) *node {
		if had, ok := p.Properties["metadata"].Properties[name]; ok && had.MaxLength != nil {
			limit = min(limit, *had.MaxLength)
		}
		return newString(&limit)
	}
	m := &node{kind: objectKind, typeName: "object", properties: map[string]*node{
		"name":         names("name", maxName),
		"generateName": names("generateName", maxName-1),
	}}
	m.measure(&apiextensionsv1.JSONSchemaProps{Type: "object"})
	r.properties["metadata"] = m
	r.measure(p)
	r.resource = &r
	return &r
}

// maxName is the length of the longest name of an object.
const maxName = 253

func newString(limit *int64) *node {
	n := &node{kind: stringKind, typeName: "string"}
	n.measure(&apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: limit})
	n.unlimited = "" // no schema can limit it further
	return n
}

// escapeAll returns names in their escaped form for expressions. Names that cannot be escaped stay
// unchanged.
func escapeAll(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = name
		if escaped, ok := apiservercel.Escape(name); ok {
			out[i] = escaped
		}
	}
	return out
}
