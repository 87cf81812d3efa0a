package manifest

import (
	"bytes"
	"reflect"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Kubernetes reads the written strings unchanged, for any appearance to its YAML parser.
func TestStrings(t *testing.T) {
	object := map[string]any{}
	var list []any
	for _, s := range []string{
		"", "a", "a b", "yes", "No", "on", "off", "y", "N", "true", "null", "~", "1", "1.5", "1e3", "0x1f", "010", "1_000", "12:30:45", "2026-01-01",
		"2026-01-01T00:00:00Z", ".5", ".inf", "-.Inf", ".nan", "=", "<<", "- a", "a: b", "# a", "a # b", "*a", "&a", "!a", "%a", "@a", "`a", "'a'", `"a"`, "{a}", "[a]", "a\nb", "a\n", "\ta", " a ",
		"é", "|", ">", "?", ":", "-", "--- a", ".spec.a", "+1", "1.2.3", "10Gi", "v1",
	} {
		object[s] = s
		list = append(list, s)
	}
	tree := map[string]any{"kind": "A", "object": object, "list": list, "number": int64(3), "half": 0.5, "nothing": nil, "is": true, "none": map[string]any{}, "empty": []any{}}
	var out bytes.Buffer
	if err := WriteObject(&out, tree); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := yaml.UnmarshalStrict(out.Bytes(), &back); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	tree["number"] = 3.0
	if !reflect.DeepEqual(back, tree) {
		t.Errorf("%#v\n%#v\n%s", back, tree, out.String())
	}
}

func TestWrite(t *testing.T) {
	d := &v1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(definition), d); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	comments := Comments{{"v1", "spec.names[].on"}: {"of an item"}, {"v1", "spec.type"}: {"first", "second"}, {"v2", "spec.type"}: {"of no version"}}
	if err := Write(&out, d, []string{"above"}, comments); err != nil {
		t.Fatal(err)
	}
	if out.String() != definition {
		t.Errorf("it is\n%swant\n%s", out.String(), definition)
	}
}

const definition = `# above
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Cluster
  names:
    kind: Widget
    plural: widgets
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [type]
            properties:
              names:
                type: array
                items:
                  type: object
                  properties:
                    # of an item
                    "on":
                      type: string
                      enum: ["no", "off", maybe]
                      default: "no"
              # first
              # second
              type:
                description: |-
                  What it is.
                  In two lines.
                type: string
                minLength: 1
    subresources:
      status: {}
`
