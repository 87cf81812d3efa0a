package structural

import (
	"strconv"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/schematest"
)

const benchSchema = `
type: object
properties:
  name: {type: string}
  replicas: {type: integer, default: 1}
  paused: {type: boolean, default: false}
  labels: {type: object, additionalProperties: {type: string}}
  rules:
    type: array
    items:
      type: object
      properties:
        host: {type: string}
        weight: {type: integer, default: 100}
        match: {type: object, properties: {path: {type: string, default: /}, method: {type: string}}}
        backends: {type: array, items: {type: object, properties: {name: {type: string}, port: {type: integer, default: 80}}}}
  extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// benchObject returns a complete object of about 4 kB.
func benchObject(t testing.TB) map[string]any {
	obj := schematest.Tree(t, `
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: x
  namespace: default
  uid: u-0
  creationTimestamp: "2026-01-02T03:04:05Z"
  generation: 3
  labels: {a: b, c: d}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]
  managedFields:
  - {apiVersion: stable.example.com/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:name: {}}}, manager: kubectl, operation: Update, time: "2026-01-02T03:04:05Z"}
spec:
  name: x
  replicas: 3
  paused: true
  labels: {a: b}
  extra: {anything: [1, {a: b}]}
`)
	var rules []any
	for i := range 20 {
		rules = append(rules, schematest.Tree(t, `{host: h`+strconv.Itoa(i)+`, weight: 1, match: {path: /x, method: GET}, backends: [{name: a, port: 1}, {name: b, port: 2}]}`))
	}
	obj["spec"].(map[string]any)["rules"] = rules
	return obj
}

func BenchmarkPrune(b *testing.B) {
	s, obj := ofSpec(b, benchSchema), benchObject(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Prune(obj)
	}
}

func BenchmarkDefault(b *testing.B) {
	s, obj := ofSpec(b, benchSchema), benchObject(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Default(obj)
	}
}

func BenchmarkHasNulls(b *testing.B) {
	s, obj := ofSpec(b, benchSchema), benchObject(b)
	b.ReportAllocs()
	for b.Loop() {
		if s.HasNulls(obj) {
			b.Fatal("the object has no null")
		}
	}
}

// Everything optional is missing, and every place has an unknown field.
func BenchmarkComplete(b *testing.B) {
	s, obj := ofSpec(b, benchSchema), benchObject(b)
	for _, r := range obj["spec"].(map[string]any)["rules"].([]any) {
		rule := r.(map[string]any)
		delete(rule, "weight")
		rule["unknown"] = true
		rule["backends"] = []any{map[string]any{}}
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		work := object.CloneTree(obj)
		b.StartTimer()
		if _, err := s.Complete(work); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	p := schematest.Props(b, benchSchema)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(p, false); err != nil {
			b.Fatal(err)
		}
	}
}
