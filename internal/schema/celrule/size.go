package celrule

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// A value without a limit in its schema is limited by the size of a request, which fits a number of
// its smallest elements. Cost estimates use these sizes.

// Lengths in JSON of values without an estimate.
const (
	emptyString     = 2
	emptyCollection = 2
	bytesPerRune    = 4
	shortestKey     = 6 // "":, and two bytes of key
)

// measure determines how expressions see n: whether they can access it, its fields, and the maximum
// size of its values.
func (n *node) measure(p *apiextensionsv1.JSONSchemaProps) {
	n.typed, n.size, n.least, n.unlimited = true, 0, 1, ""
	switch n.kind {
	case intOrStringKind:
		n.measureText(p, bytesPerRune, requestLimit-2)
	case stringKind:
		n.least = emptyString
		n.measureText(p, bytesPerRune, longest(p.Enum))
	case bytesKind:
		n.least = emptyString
		n.measureText(p, 1, requestLimit-2)
	case durationKind:
		n.least, n.size = apiservercel.MinDurationSizeJSON, apiservercel.MaxDurationSizeJSON
	case dateKind:
		n.least, n.size = apiservercel.JSONDateSize, apiservercel.JSONDateSize
	case dateTimeKind:
		n.least, n.size = apiservercel.MinDatetimeSizeJSON, apiservercel.MaxDatetimeSizeJSON
	case boolKind:
		n.least = apiservercel.MinBoolSize
	case listKind:
		n.measureCollection(n.items, p.MaxItems, 1)
		if p.MaxItems == nil {
			n.unlimited = "maxItems"
		}
	case objectKind:
		if n.additional != nil {
			n.measureCollection(n.additional, p.MaxProperties, shortestKey)
			if p.MaxProperties == nil {
				n.unlimited = "maxProperties"
			}
		} else {
			n.measureFields(p.Required)
		}
	case noKind:
		n.typed = false
	}
}

func (n *node) measureCollection(element *node, limit *int64, more int64) {
	n.least = emptyCollection
	if element == nil || !element.seen().typed {
		n.typed = false
		return
	}
	if limit != nil {
		n.size = max(*limit, 0)
		return
	}
	n.size = (requestLimit - 2) / (element.seen().least + more)
}

func (n *node) measureFields(required []string) {
	n.least = emptyCollection
	n.fields = make(map[string]fieldOf, len(n.properties))
	for name, c := range n.properties {
		// A lookup unescapes the name first.
		if unescaped, ok := apiservercel.Unescape(name); ok && unescaped == name {
			n.fields[name] = fieldOf{name: name, node: c}
		}
	}
	for name, c := range n.properties {
		escaped, ok := apiservercel.Escape(name)
		if !ok || !c.seen().typed {
			continue
		}
		if unescaped, ok := apiservercel.Unescape(escaped); ok && unescaped == name {
			n.fields[escaped] = fieldOf{name, c, true}
		}
	}
	counted := map[string]bool{}
	for _, name := range required {
		c := n.properties[name]
		if c == nil || counted[name] || c.hasDefault || !c.seen().typed {
			continue
		}
		counted[name] = true
		n.least += int64(len(name)) + c.seen().least + 4
	}
}

// measureText computes the maximum number of bytes of a string from the size of a character and its
// limit, or from the default limit.
func (n *node) measureText(p *apiextensionsv1.JSONSchemaProps, each, otherwise int64) {
	if p.MaxLength != nil {
		n.size = max(*p.MaxLength, 0) * each
		return
	}
	n.size = otherwise
	if len(p.Enum) == 0 || n.kind != stringKind {
		n.unlimited = "maxLength"
	}
}

// limited returns the size of n, with limit in place of a missing limit.
func (n *node) limited(limit int64) int64 {
	if n.kind == stringKind || n.kind == intOrStringKind {
		limit *= bytesPerRune
	}
	return min(n.size, limit)
}

// longest is the length of the longest string of an enum.
func longest(enum []apiextensionsv1.JSON) int64 {
	if len(enum) == 0 {
		return requestLimit - 2
	}
	found := 0
	for _, e := range enum {
		var value any
		if err := utiljson.Unmarshal(e.Raw, &value); err != nil {
			continue
		}
		if s, ok := value.(string); ok {
			found = max(found, len(s))
		}
	}
	return int64(found)
}

// repeats returns the maximum number of values of n in one object.
func (n *node) repeats() uint64 { return uint64(requestLimit / (n.least + 1)) }
