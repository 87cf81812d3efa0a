package check

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
			if n := lineOf(p.Message); n > 0 && !d.generated && field == "" && strings.HasPrefix(p.Message, "line ") {
				p.Line, p.Column = d.line+n-1, 1 // the line in the message is relative to the document
				_, p.Message, _ = strings.Cut(p.Message, ": ")
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

// at returns the position of a field in the file, or of its closest existing parent.
func (d *Document) at(root *yaml.Node, field string) (line, column int) {
	switch {
	case d.generated:
		return 0, 0
	case root == nil:
		return d.line, 1
	}
	_, place := locate(root, field)
	if place == nil {
		place = root
	}
	return d.line + place.Line - 1, place.Column
}

// locate follows a field path, such as spec.containers[0].image, from a node. It returns the value,
// or nil if it does not exist, and the node to report: the key of the field, or of the last existing
// parent.
func locate(node *yaml.Node, path string) (value, place *yaml.Node) {
	for path != "" {
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		if strings.HasPrefix(path, "[") {
			inside, rest, ok := strings.Cut(path[1:], "]")
			if !ok {
				return nil, place
			}
			if next, key := element(node, inside); next != nil {
				node, place, path = next, key, strings.TrimPrefix(rest, ".")
				continue
			}
			return nil, place
		}
		next, key, rest := child(node, path)
		if next == nil {
			if rest, ok := strings.CutPrefix(path, "validation"); ok { // Kubernetes' internal field for the schema of a single version
				path = "versions[0].schema" + rest
				if next, key, rest = child(node, path); next != nil {
					node, place, path = next, key, rest
					continue
				}
			}
			return nil, place
		}
		node, place, path = next, key, rest
	}
	return node, place
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
