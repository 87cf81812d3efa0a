package check

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A source finds the places of problems in the file that a program made an object from.
type source interface {
	// place sets the place of a problem with a field. The problem has the place in the document.
	place(d *Document, root *yaml.Node, field string, p *Problem)
}

// unknownSource is a source without lines.
type unknownSource struct{}

func (*unknownSource) place(_ *Document, _ *yaml.Node, _ string, p *Problem) { p.Line, p.Column = 0, 0 }

// place sets the lines and columns of problems and warnings.
func (d *Document) place(r *Result) {
	if len(r.Problems)+len(r.Warnings) == 0 {
		return
	}
	root := d.root()
	for _, list := range [][]Problem{r.Problems, r.Warnings} {
		for i := range list {
			p := &list[i]
			field := p.Field
			if field == "" {
				field = quotedField(p.Message)
			}
			if d.isSpec {
				field = strings.TrimPrefix(field, "spec.")
			}
			p.Line, p.Column = d.at(root, field)
			if n := lineOf(p.Message); n > 0 && field == "" && strings.HasPrefix(p.Message, "line ") {
				p.Line, p.Column = d.line+n-1, 1 // the line in the message is relative to the document
				_, p.Message, _ = strings.Cut(p.Message, ": ")
			}
			if d.source != nil {
				d.source.place(d, root, field, p)
			}
		}
		inOrder(list)
	}
}

// root parses the text, or returns nil.
func (d *Document) root() *yaml.Node {
	var document yaml.Node
	if yaml.Unmarshal(d.text, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	root := document.Content[0]
	if d.path != "" {
		if found, _ := locate(root, d.path); found != nil {
			root = found
		}
	}
	return root
}

// at returns the position of a field in the input, or of its closest existing parent.
func (d *Document) at(root *yaml.Node, field string) (line, column int) {
	if root == nil {
		return d.in(nil)
	}
	_, place := locate(root, field)
	if place == nil {
		place = root
	}
	return d.in(place)
}

// in returns the position of a node of the text in the input.
func (d *Document) in(node *yaml.Node) (line, column int) {
	if node == nil {
		return d.line, 1
	}
	return d.line + node.Line - 1, node.Column
}

// locate follows a field path, such as spec.containers[0].image, from a node. It returns the value,
// or nil if it does not exist, and the node to report: the key of the field, or of the last existing
// parent.
func locate(node *yaml.Node, path string) (value, place *yaml.Node) {
	for path != "" {
		next, key, rest := step(node, path)
		if next == nil {
			return nil, place
		}
		node, place, path = next, key, rest
	}
	return node, place
}

// step follows the first field or element of a path, and returns the rest of the path.
func step(node *yaml.Node, path string) (value, place *yaml.Node, rest string) {
	node = resolved(node)
	if strings.HasPrefix(path, "[") {
		inside, rest, ok := strings.Cut(path[1:], "]")
		if !ok {
			return nil, nil, ""
		}
		value, place = element(node, inside)
		return value, place, strings.TrimPrefix(rest, ".")
	}
	if value, place, rest = child(node, path); value != nil {
		return value, place, rest
	}
	if rest, ok := strings.CutPrefix(path, "validation"); ok { // Kubernetes' internal field for the schema of a single version
		return child(node, "versions[0].schema"+rest)
	}
	return nil, nil, ""
}

// resolved returns the node that an alias names.
func resolved(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// element returns the element at a list index or a map key.
func element(node *yaml.Node, inside string) (value, place *yaml.Node) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == inside {
				return node.Content[i+1], node.Content[i]
			}
		}
		return nil, nil
	}
	n, err := strconv.Atoi(inside)
	if err != nil || node.Kind != yaml.SequenceNode || n < 0 || n >= len(node.Content) {
		return nil, nil
	}
	return node.Content[n], node.Content[n]
}

// child returns the field of a map with the longest name that is a prefix of path: names may have
// dots.
func child(node *yaml.Node, path string) (value, place *yaml.Node, rest string) {
	if node.Kind != yaml.MappingNode {
		return nil, nil, ""
	}
	longest := -1
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		after, ok := strings.CutPrefix(path, name)
		if !ok || len(name) <= longest || after != "" && after[0] != '.' && after[0] != '[' {
			continue
		}
		longest = len(name)
		value, place, rest = node.Content[i+1], node.Content[i], strings.TrimPrefix(after, ".")
	}
	return value, place, rest
}

// counterpart follows a field path in a built object and in its source. It returns the node to report in the
// source: the key of the field, or of its closest existing parent. It returns nil if the build changed the value,
// or added or removed a parent.
func counterpart(built, source *yaml.Node, path string) (place *yaml.Node) {
	for path != "" {
		next, _, rest := step(built, path)
		other, key, otherRest := step(source, path)
		switch {
		case next == nil && other == nil:
			return place
		case next != nil && resolved(built).Kind == yaml.SequenceNode:
			other = sameElement(resolved(built), next, resolved(source))
			key = other
		case otherRest != rest:
			return nil
		}
		if next == nil || other == nil {
			return nil
		}
		built, source, place, path = next, other, key, rest
	}
	if !equalNodes(built, source) {
		return nil
	}
	return place
}

// sameElement returns the element of a source list that became an element of the built list: that with the same
// name, or an equal one. It returns nil if several are possible.
func sameElement(built, element, source *yaml.Node) *yaml.Node {
	if source.Kind != yaml.SequenceNode {
		return nil
	}
	if equalNodes(built, source) {
		return source.Content[slices.Index(built.Content, element)]
	}
	name, _ := locate(element, "name")
	same := func(one *yaml.Node) bool {
		if name == nil {
			return equalNodes(one, element)
		}
		other, _ := locate(one, "name")
		return other != nil && equalNodes(name, other)
	}
	if only(built.Content, same) != element {
		return nil
	}
	return only(source.Content, same)
}

// only returns the only node with a property, or nil.
func only(nodes []*yaml.Node, has func(*yaml.Node) bool) (found *yaml.Node) {
	for _, one := range nodes {
		if !has(one) {
			continue
		}
		if found != nil {
			return nil
		}
		found = one
	}
	return found
}

// equalNodes reports whether nodes have the same value.
func equalNodes(a, b *yaml.Node) bool {
	var one, other any
	return a.Decode(&one) == nil && b.Decode(&other) == nil && reflect.DeepEqual(one, other)
}
