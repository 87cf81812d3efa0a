package check

import (
	"encoding/json"
	"fmt"
	"io"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// Definitions reads the CustomResourceDefinitions at some paths, in order, with the conversion rules for
// them. The path - is in. Of several with the same name the last one wins.
func Definitions(paths []string, in io.Reader) ([]*v1.CustomResourceDefinition, error) {
	documents, err := read(paths, in)
	if err != nil {
		return nil, err
	}
	var all []*v1.CustomResourceDefinition
	at := map[string]int{}
	for i := range documents.documents {
		d := &documents.documents[i]
		if d.broken != nil {
			return nil, fmt.Errorf("%s: %w", d.where(), d.broken)
		}
		if !d.isDefinition() {
			continue
		}
		definition := &v1.CustomResourceDefinition{}
		if err := json.Unmarshal(object.AppendJSON(nil, d.tree), definition); err != nil {
			return nil, fmt.Errorf("%s: %w", d.where(), err)
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
			metav1.SetMetaDataAnnotation(&all[n].ObjectMeta, conversion.Annotation, string(object.AppendJSON(nil, rules.tree["spec"])))
		}
	}
	return all, nil
}
