// Package manifest writes CustomResourceDefinitions and objects as readable YAML.
//
// Important fields come first: the type of a field before its bounds, names before versions. Short
// lists are on one line, and comments stand above their fields. The package knows the fields of
// definitions and schemas, but not their meaning.
package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Place is a field of a schema of a version: spec.items[].name, spec.map[*].
type Place struct{ Version, Path string }

// Comments are comments above fields, a line each.
type Comments map[Place][]string

// Write writes a definition, with comments above it and above fields.
func Write(w io.Writer, d *v1.CustomResourceDefinition, above []string, comments Comments) error {
	tree, err := treeOf(d)
	if err != nil {
		return err
	}
	delete(tree, "status")
	if meta, ok := tree["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	y := &writer{comments: comments, first: ofDefinitions()}
	root := y.object(tree)
	root.HeadComment = comment(above)
	return encode(w, root)
}

// WriteObject writes an object.
func WriteObject(w io.Writer, tree map[string]any) error {
	return encode(w, (&writer{first: ofObjects()}).object(tree))
}

func encode(w io.Writer, root *yaml.Node) error {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(root); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// treeOf returns a definition as decoded JSON.
func treeOf(d *v1.CustomResourceDefinition) (tree map[string]any, err error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return tree, decoder.Decode(&tree)
}

func comment(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "# " + strings.Join(lines, "\n# ")
}

// A writer creates YAML nodes. Inside a schema it knows the version and the path.
type writer struct {
	comments Comments
	version  string
	first    []string // fields in this order, in any place; others follow by name, except those in last
}

func ofObjects() []string { return []string{"apiVersion", "kind", "metadata", "name", "namespace"} }

func ofDefinitions() []string {
	return []string{
		"apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations",
		"group", "scope", "names", "plural", "singular", "shortNames", "categories", "listKind",
		"served", "storage", "deprecated", "deprecationWarning", "schema",
		"description", "title", "type", "x-kubernetes-int-or-string", "format", "enum", "nullable", "default", "pattern",
		"x-kubernetes-list-type", "x-kubernetes-list-map-keys",
	}
}

// last returns the fields that come after all others: nested schemas and long values.
func last() []string {
	return []string{
		"x-kubernetes-validations", "required", "items", "additionalProperties", "properties",
		"subresources", "selectableFields", "additionalPrinterColumns", "versions", "conversion", "spec", "status",
	}
}

func (y *writer) rank(name string) int {
	if i := slices.Index(y.first, name); i >= 0 {
		return i - len(y.first)
	}
	return 1 + slices.Index(last(), name) // 0 for other fields
}

func (y *writer) names(tree map[string]any) []string {
	var all []string
	for name := range tree {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(y.rank(a), y.rank(b)), cmp.Compare(a, b)) })
	return all
}

// object is the node of an object that is no schema.
func (y *writer) object(tree map[string]any) *yaml.Node {
	if name, ok := tree["name"].(string); ok && tree["schema"] != nil {
		y.version = name
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range y.names(tree) {
		below, _ := tree[name].(map[string]any)
		if name == "openAPIV3Schema" && below != nil {
			add(node, name, y.schema(below, ""))
			continue
		}
		add(node, name, y.value(tree[name]))
	}
	return node
}

func add(node *yaml.Node, name string, value *yaml.Node) {
	key := &yaml.Node{}
	key.SetString(name)
	if needsQuotes(name) {
		key.Style = yaml.DoubleQuotedStyle
	}
	key.HeadComment, value.HeadComment = value.HeadComment, ""
	node.Content = append(node.Content, key, value)
}

func (y *writer) value(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		if node := y.object(v); len(node.Content) > 0 {
			return node
		}
		return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		short := 0
		for _, item := range v {
			below := y.value(item)
			node.Content = append(node.Content, below)
			short += len(below.Value) + 2
			if below.Kind != yaml.ScalarNode || below.Style == yaml.LiteralStyle {
				short = longest + 1
			}
		}
		if short <= longest {
			node.Style = yaml.FlowStyle
		}
		return node
	}
	return scalar(v)
}

// longest limits the length of a list on one line.
const longest = 70

func scalar(v any) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case string:
		node.SetString(v)
		if needsQuotes(v) {
			node.Style = yaml.DoubleQuotedStyle
		}
	case nil:
		node.Tag, node.Value = "!!null", "null"
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(v)
	case json.Number:
		node.Tag, node.Value = "!!int", v.String()
		if strings.ContainsAny(v.String(), ".eE") {
			node.Tag = "!!float"
		}
	default:
		_ = node.Encode(v) // of a number
	}
	return node
}

// numeric matches strings that YAML may read as a number, a time or a date.
var numeric = regexp.MustCompile(`^[-+.]*[0-9][-+.,:_0-9a-zA-Z]*$|^[-+]?\.(?i:inf|nan)$`)

// needsQuotes reports whether a YAML 1.1 parser, such as Kubernetes', reads a text as another value.
func needsQuotes(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "=", "":
		return true
	}
	return numeric.MatchString(s)
}

// schema is the node of a schema at a path.
func (y *writer) schema(tree map[string]any, path string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range y.names(tree) {
		below, isTree := tree[name].(map[string]any)
		switch {
		case name == "properties" && isTree:
			add(node, name, y.properties(below, path))
		case name == "items" && isTree:
			add(node, name, y.schema(below, path+"[]"))
		case name == "additionalProperties" && isTree:
			add(node, name, y.schema(below, path+"[*]"))
		default:
			add(node, name, (&writer{first: y.first}).value(tree[name]))
		}
	}
	node.HeadComment = comment(y.comments[Place{y.version, path}])
	return node
}

func (y *writer) properties(tree map[string]any, path string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	var all []string
	for name := range tree {
		all = append(all, name)
	}
	// The spec before the status is in order of names, too.
	slices.Sort(all)
	for _, name := range all {
		below, _ := tree[name].(map[string]any)
		add(node, name, y.schema(below, strings.TrimPrefix(path+"."+name, ".")))
	}
	return node
}
