package schema

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/schema/schematest"
)

// The messages are those of kube-apiserver.
func TestCompleteRefusesMetadataThatIsNone(t *testing.T) {
	s := ofSpec(t, `{type: object, properties: {
		emb: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true},
		all: {type: object, additionalProperties: {type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}},
		typed: {type: object, x-kubernetes-embedded-resource: true, properties: {kind: {type: string}}}}}`)
	const prefix = `CronTab in version "v1" cannot be handled as a CronTab: `
	for _, tt := range []struct{ object, want string }{
		{`{metadata: {labels: {a: 1}}}`, `json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`},
		{`{metadata: {labels: 5}}`, `json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string`},
		{`{metadata: 5}`, `json: cannot unmarshal number into Go value of type v1.ObjectMeta`},
		{`{metadata: {creationTimestamp: bad}}`, `parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006"`},
		{`{spec: {emb: {apiVersion: 1, kind: X}}}`, `spec.emb.apiVersion: Invalid value: 1: must be a string`},
		{`{spec: {emb: {kind: null}}}`, `spec.emb.kind: Invalid value: null: must be a string`},
		{`{spec: {emb: {metadata: {labels: {a: 1}}}}}`, `spec.emb.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`},
		{`{spec: {emb: {metadata: 7}}}`, `spec.emb.metadata: Invalid value: 7: json: cannot unmarshal number into Go value of type v1.ObjectMeta`},
		{`{spec: {all: {k: [{}, {kind: 1}]}}}`, `spec.all[k][1].kind: Invalid value: 1: must be a string`},
	} {
		_, _, err := s.Complete(schematest.Tree(t, tt.object))
		if err == nil || err.Error() != prefix+tt.want || !errors.IsBadRequest(err) {
			t.Errorf("%s:\n got %v\nwant %s", tt.object, err, prefix+tt.want)
		}
	}
	// A dropped null is not checked.
	if _, _, err := s.Complete(schematest.Tree(t, `{spec: {typed: {kind: null}}}`)); err != nil {
		t.Error(err)
	}
}

func TestCompletePrunesAndDefaults(t *testing.T) {
	s := ofSpec(t, `{type: object, properties: {a: {type: string, default: x}, b: {type: string},
		emb: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`)
	obj, unknown, err := s.Complete(schematest.Tree(t, `{metadata: {name: x, bar: 1}, spec: {b: null, z: 1, emb: {metadata: {foo: 1}}}, a: 2}`))
	if err != nil {
		t.Fatal(err)
	}
	schematest.Equal(t, "unknown", unknown, []string{"metadata.bar", "a", "spec.z", "spec.emb.metadata.foo"})
	schematest.Equal(t, "object", obj, schematest.Tree(t, `{metadata: {name: x}, spec: {a: x, emb: {metadata: {}}}}`))
}

// An object of another kind has only that error: its fields are not checked, except for its metadata.
func TestCompleteOfAnotherKind(t *testing.T) {
	s := ofSpec(t, `{type: object, properties: {a: {type: string, default: x}}}`)
	for _, another := range []string{"kind: CronTabList", "kind: Other, apiVersion: stable.example.com/v1", "kind: CronTab, apiVersion: other.example.com/v1"} {
		obj, unknown, err := s.Complete(schematest.Tree(t, "{"+another+", metadata: {name: x, bar: 1}, items: [], spec: {z: 1}}"))
		if err != nil {
			t.Fatal(err)
		}
		schematest.Equal(t, "unknown", unknown, []string{"metadata.bar"})
		schematest.Equal(t, "object", obj, schematest.Tree(t, "{"+another+", metadata: {name: x}, items: [], spec: {z: 1}}"))
	}
	_, unknown, err := s.Complete(schematest.Tree(t, "{kind: CronTab, apiVersion: stable.example.com/v2, items: []}"))
	if err != nil {
		t.Fatal(err)
	}
	schematest.Equal(t, "unknown", unknown, []string{"items"})
}
