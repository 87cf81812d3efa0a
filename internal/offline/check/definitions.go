package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// published returns the published definitions of wanted kinds that are not served, and have no
// definition among the documents.
func (c *checker) published(wanted map[kindName]bool, have ...[]Document) (all []Document, err error) {
	if c.o.Published == nil {
		return nil, nil
	}
	defined := map[kindName]bool{}
	for _, documents := range have {
		for i := range documents {
			if d := &documents[i]; d.broken == nil && d.isDefinition() {
				defined[d.defines()] = true
			}
		}
	}
	for kind := range wanted {
		if defined[kind] || (*c.kinds.Load())[kind] != nil || kind.Group == "" {
			continue
		}
		place, body, err := c.o.Published(kind.Group, kind.Kind)
		if err != nil {
			return nil, err
		}
		if body == nil {
			continue
		}
		t, _, err := codec.Decode(codec.JSON, body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		all = append(all, Document{file: place, line: 1, source: &unknownSource{}, text: body, body: body, media: codec.JSON, tree: t})
	}
	order.Stable(all, func(a, b Document) int { return cmp.Compare(a.file, b.file) })
	return all, nil
}

// DefinitionTrees reads the CustomResourceDefinitions at some paths as they are, sorted by name. It
// skips files of folders that cannot be parsed, such as templates.
func DefinitionTrees(paths []string) ([]object.Tree, error) {
	documents, err := read(paths, nil)
	if err != nil {
		return nil, err
	}
	byName := map[string]object.Tree{}
	for i := range documents.documents {
		if d := &documents.documents[i]; d.broken == nil && d.isDefinition() {
			byName[object.Name(d.tree)] = d.tree
		}
	}
	var all []object.Tree
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all, nil
}

// Definitions reads the CustomResourceDefinitions at some paths, in order, with the conversion rules for
// them. The path - is in. Of several with the same name the last one wins.
func Definitions(paths []string, in io.Reader) ([]*v1.CustomResourceDefinition, error) {
	all, _, err := definitionsAndRules(paths, in)
	return all, err
}

// Convertible is Definitions, and fails for rules without a definition.
func Convertible(paths []string, in io.Reader) ([]*v1.CustomResourceDefinition, error) {
	all, unused, err := definitionsAndRules(paths, in)
	if err == nil && len(unused) > 0 {
		err = fmt.Errorf("%s has rules for the definition %q, but there is no such definition", unused[0].where(), unused[0].target())
	}
	return all, err
}

func definitionsAndRules(paths []string, in io.Reader) (all []*v1.CustomResourceDefinition, unused []*Document, err error) {
	documents, err := read(paths, in)
	if err != nil {
		return nil, nil, err
	}
	at := map[string]int{}
	for i := range documents.documents {
		d := &documents.documents[i]
		if d.broken != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.where(), d.broken)
		}
		if !d.isDefinition() {
			continue
		}
		definition := &v1.CustomResourceDefinition{}
		if err := json.Unmarshal(object.AppendJSON(nil, d.tree), definition); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.where(), err)
		}
		if n, ok := at[definition.Name]; ok {
			all[n] = definition
			continue
		}
		at[definition.Name] = len(all)
		all = append(all, definition)
	}
	for name, rules := range rulesOf(documents) {
		if n, ok := at[name]; ok {
			metav1.SetMetaDataAnnotation(&all[n].ObjectMeta, conversion.Annotation, rules.ruleText())
		} else {
			unused = append(unused, rules)
		}
	}
	return all, unused, nil
}
