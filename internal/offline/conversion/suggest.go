package conversion

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema/conversion"
)

// Suggest writes a CRDConversionConfig with rules that follow from the schemas of a definition. Comments
// ask for what they do not decide. It returns the number of questions.
func Suggest(w io.Writer, d *v1.CustomResourceDefinition) (questions int, err error) {
	schemas := map[string]*v1.JSONSchemaProps{}
	hub := ""
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		schemas[v.Name] = &v1.JSONSchemaProps{}
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			schemas[v.Name] = v.Schema.OpenAPIV3Schema
		}
		if v.Storage {
			hub = v.Name
		}
	}
	if hub == "" || len(d.Spec.Versions) < 2 {
		return 0, fmt.Errorf("%s needs a storage version and another one for rules between them", d.Name)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "apiVersion: terasky.com/v1alpha1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  targetCRD:\n    name: %[2]s\n  hubVersion: %[3]s\n  spokes:\n", conversion.ConfigKind, d.Name, hub)
	for i := range d.Spec.Versions {
		name := d.Spec.Versions[i].Name
		if name == hub {
			continue
		}
		fmt.Fprintf(&out, "  - version: %s\n", name)
		all := conversion.Suggest(d.Spec.Group, schemas[hub], schemas[name])
		if len(all) == 0 {
			fmt.Fprintf(&out, "    rules: []\n")
			continue
		}
		fmt.Fprintf(&out, "    rules:\n")
		for _, s := range all {
			if s.Question != "" {
				questions++
				fmt.Fprintf(&out, "    # QUESTION: %s\n", s.Question)
			}
			fmt.Fprintf(&out, "    - strategy: %s\n", s.Rule["strategy"])
			delete(s.Rule, "strategy")
			text, err := yaml.Marshal(s.Rule)
			if err != nil {
				return 0, err
			}
			for line := range strings.Lines(string(text)) {
				out.WriteString("      " + line)
			}
		}
	}
	_, err = w.Write(out.Bytes())
	return questions, err
}
