package oracle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/crd/crdtest"
)

// BenchmarkWrite measures the schema engine for one write of a valid object: prune, default, validate.
// Run it with
//
//	go test -run '^$' -bench Write -benchmem .
func BenchmarkWrite(b *testing.B) {
	for _, c := range benchCases(b) {
		ctx := context.Background()
		b.Run(c.name+"/upstream", func(b *testing.B) {
			u, v := c.upstream(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := u.Complete(c.obj, false); err != nil {
					b.Fatal(err)
				}
				if errs := v.Create(ctx, c.obj); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
		b.Run(c.name+"/anykind", func(b *testing.B) {
			s := c.ours(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.Complete(c.obj); err != nil {
					b.Fatal(err)
				}
				if errs := s.Validate(ctx, c.obj, nil); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkCompile measures the preparations for the first object.
func BenchmarkCompile(b *testing.B) {
	for _, c := range benchCases(b) {
		b.Run(c.name+"/upstream", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.upstream(b)
			}
		})
		b.Run(c.name+"/anykind", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.ours(b)
			}
		})
	}
}

type benchCase struct {
	name  string
	props *apiextensionsv1.JSONSchemaProps
	obj   map[string]any
}

func (c *benchCase) upstream(b *testing.B) (*Upstream, *Validator) {
	u, err := NewUpstream(c.props)
	if err != nil {
		b.Fatal(err)
	}
	v, err := NewValidator(c.props)
	if err != nil {
		b.Fatal(err)
	}
	return u, v
}

func (c *benchCase) ours(b *testing.B) *schema.Schema {
	s, err := schema.Parse(c.props, kindSaid(c.obj))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func benchCases(b *testing.B) []benchCase {
	find := func(name, version string) *apiextensionsv1.JSONSchemaProps {
		for _, crd := range definitions(b) {
			for _, v := range crd.Spec.Versions {
				if crd.Name == name && v.Name == version {
					return v.Schema.OpenAPIV3Schema
				}
			}
		}
		b.Fatalf("the corpus has no %s/%s", name, version)
		return nil
	}
	cases := []benchCase{
		{"HTTPRoute", find("httproutes.gateway.networking.k8s.io", "v1"), decode(b, httpRoute)},
		{"Certificate", find("certificates.cert-manager.io", "v1"), decode(b, certificate)},
		{"300Properties", typed(b, crdtest.Definition(300, 80, 1)).Spec.Versions[0].Schema.OpenAPIV3Schema, nil},
		{"5000Items", props(b, listSchema), longList()},
	}
	cases[2].obj = map[string]any{
		"apiVersion": "cloud.example.com/v1beta1", "kind": "Instance", "metadata": map[string]any{"name": "x"},
		"spec": fill(cases[2].props.Properties["spec"]), "status": fill(cases[2].props.Properties["status"]),
	}
	for _, c := range cases {
		s := c.ours(b)
		s.Default(c.obj)
		if errs := s.Validate(context.Background(), c.obj, nil); len(errs) > 0 {
			b.Fatalf("%s: %v", c.name, errs)
		}
	}
	return cases
}

func decode(t testing.TB, document string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func props(t testing.TB, document string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(document), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fill returns a value in which every property of a schema is set.
func fill(p apiextensionsv1.JSONSchemaProps) any {
	if len(p.Enum) > 0 {
		var v any
		if err := utiljson.Unmarshal(p.Enum[0].Raw, &v); err != nil {
			panic(err)
		}
		return v
	}
	switch p.Type {
	case "object":
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			out[name] = fill(p.Properties[name])
		}
		if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
			out["key"] = fill(*p.AdditionalProperties.Schema)
		}
		return out
	case "array":
		return []any{fill(*p.Items.Schema)}
	case "integer":
		return int64(1)
	case "number":
		return 1.5
	case "boolean":
		return true
	}
	if p.Format == "date-time" {
		return "2026-01-02T03:04:05Z"
	}
	return "value"
}

func longList() map[string]any {
	items := make([]any, 5000)
	for i := range items {
		items[i] = map[string]any{
			"name": fmt.Sprintf("item-%d", i), "host": "a.example.com", "port": int64(8080), "protocol": "TCP",
			"labels": map[string]any{"a": "b"}, "weight": 0.5,
		}
	}
	return map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"items": items},
	}
}

const listSchema = `
type: object
required: [spec]
properties:
  spec:
    type: object
    properties:
      items:
        type: array
        maxItems: 10000
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name, port]
          properties:
            name: {type: string, minLength: 1, maxLength: 63}
            host: {type: string, format: hostname}
            port: {type: integer, format: int32, minimum: 1, maximum: 65535}
            protocol: {type: string, enum: [TCP, UDP, SCTP], default: TCP}
            labels: {type: object, additionalProperties: {type: string}}
            weight: {type: number, minimum: 0, maximum: 1}
`

const httpRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: example, namespace: default, labels: {app: example}}
spec:
  parentRefs: [{name: gateway, sectionName: https}, {name: other, port: 8443}]
  hostnames: [example.com, "*.example.com"]
  rules:
  - matches:
    - path: {type: PathPrefix, value: /login}
      headers: [{name: version, value: two}, {type: RegularExpression, name: x, value: "a.*"}]
      queryParams: [{name: q, value: "1"}]
      method: GET
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier: {set: [{name: a, value: b}], add: [{name: c, value: d}], remove: [e]}
    - type: RequestMirror
      requestMirror: {backendRef: {name: mirror, port: 80}}
    backendRefs: [{name: one, port: 8080, weight: 90}, {name: two, port: 8080, weight: 10}]
  - matches: [{path: {type: Exact, value: /old}}]
    filters:
    - type: RequestRedirect
      requestRedirect: {scheme: https, hostname: new.example.com, statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}
  - backendRefs: [{name: rest, port: 80}]
    timeouts: {request: 10s, backendRequest: 2s}
`

const certificate = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: example, namespace: default}
spec:
  secretName: example-tls
  secretTemplate: {annotations: {a: b}, labels: {c: d}}
  duration: 2160h
  renewBefore: 360h
  privateKey: {algorithm: RSA, encoding: PKCS1, size: 2048, rotationPolicy: Always}
  isCA: false
  usages: [server auth, client auth]
  subject: {organizations: [cert-manager], countries: [DE], postalCodes: ["1"]}
  dnsNames: [example.com, www.example.com]
  uris: ["spiffe://cluster.local/ns/sandbox/sa/example"]
  ipAddresses: [192.168.0.5]
  issuerRef: {name: ca-issuer, kind: Issuer, group: cert-manager.io}
status:
  conditions:
  - {type: Ready, status: "True", reason: Ready, message: up to date, lastTransitionTime: "2026-01-02T03:04:05Z", observedGeneration: 1}
  notAfter: "2026-04-02T03:04:05Z"
  notBefore: "2026-01-02T03:04:05Z"
  renewalTime: "2026-03-18T03:04:05Z"
  revision: 1
`
