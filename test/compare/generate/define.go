package generate

import (
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define creates definitions, most of them with one error. The cleanup deletes accepted ones: every
// definition costs kube-apiserver memory.
func define(g *G) {
	d := g.definition()
	name, _ := at(d, "metadata")["name"].(string)
	r := g.definitions()
	if g.chance(2) {
		// A valid one first, then changes of it.
		g.defineStep(r, "POST", definitionsPath, d)
		now := g.add(wire.Step{Kind: "define get", Resource: r.Label(), Method: "GET", Path: definitionsPath + "/" + name})
		for range 1 + g.IntN(3) {
			changed := clone(d).(map[string]any)
			g.mutateDefinition(changed, r)
			at(changed, "metadata")["name"] = name
			switch g.IntN(5) {
			case 0:
				g.add(wire.Step{Kind: "define patch", Resource: r.Label(), Method: "PATCH", Path: definitionsPath + "/" + name + g.writeQuery(), Header: typed(mergePatch), Body: encode(difference(d, changed))})
			case 1:
				g.add(wire.Step{Kind: "define apply", Resource: r.Label(), Method: "PATCH", Path: definitionsPath + "/" + name + "?fieldManager=one&force=true", Header: typed(applyPatch), Body: encode(changed)})
			default:
				at(changed, "metadata")["resourceVersion"] = wire.Refer(now, "metadata.resourceVersion")
				if !g.chance(4) {
					delete(at(changed, "metadata"), "resourceVersion")
				}
				g.defineStep(r, "PUT", definitionsPath+"/"+name, changed)
			}
		}
	} else {
		g.mutateDefinition(d, r)
		g.defineStep(r, "POST", definitionsPath+g.writeQuery(), d)
	}
	for _, name := range []string{name, text(at(d, "metadata")["name"])} {
		if !strings.Contains(name, wire.Scope) {
			continue // without a name, it would select all definitions
		}
		g.cleanup = append(g.cleanup, wire.Step{Method: "DELETE", Path: definitionsPath + "/" + name})
	}
}

func (g *G) definitions() *Resource {
	for _, r := range g.Resources {
		if r.Plural == "customresourcedefinitions" {
			return r
		}
	}
	return &Resource{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition"}
}

// defineStep sends a definition. The status in its response is asynchronous on kube-apiserver, and is
// not compared.
func (g *G) defineStep(r *Resource, method, path string, d map[string]any) {
	g.add(wire.Step{Kind: "define " + strings.ToLower(method), Resource: r.Label(), Method: method, Path: path, Header: typed("application/json"), Body: encode(d)})
}

// definition returns a valid definition.
func (g *G) definition() map[string]any {
	plural := wire.Scope + "s"
	group, kind := wire.Scope+".example.com", "K"+wire.Scope
	version := func(name string, storage bool) any {
		v := map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": g.structural()}}
		if g.chance(3) {
			v["subresources"] = one[any](g, map[string]any{"status": map[string]any{}}, map[string]any{"status": map[string]any{}, "scale": map[string]any{"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}, map[string]any{"scale": map[string]any{"specReplicasPath": one(g, "spec.n", ".status.n", ".spec['n']", "", ".spec.n"), "statusReplicasPath": one(g, ".status.n", ".spec.n", ""), "labelSelectorPath": one(g, ".status.s", ".spec.s", "x", "")}})
		}
		if g.chance(4) {
			v["additionalPrinterColumns"] = []any{map[string]any{"name": one(g, "A", "", "Age"), "type": one(g, "string", "integer", "date", "bogus", ""), "jsonPath": one(g, ".spec.a", ".metadata.creationTimestamp", "spec.a", ".spec[", "", "{.spec.a}", ".spec.a[?(@.x=='y')]"), "format": one(g, "", "int32", "bogus", "date-time"), "priority": one[any](g, 0, 1, -1)}}
		}
		if g.chance(6) {
			v["selectableFields"] = []any{map[string]any{"jsonPath": one(g, ".spec.a", ".spec.n", ".metadata.name", "spec.a", ".spec.list", ".spec", ".spec.bogus", ".spec.a[0]", "")}, map[string]any{"jsonPath": ".spec.a"}}
		}
		if g.chance(8) {
			v["deprecated"] = g.chance(2)
			v["deprecationWarning"] = one[any](g, "gone soon", "", strings.Repeat("x", 300), "a\nb", nil)
		}
		return v
	}
	versions := []any{version("v1", true)}
	if g.chance(3) {
		versions = append(versions, version(one(g, "v1beta1", "v2", "v1", "x", "V1", ""), g.chance(10)))
	}
	return map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{"group": group, "scope": one(g, "Namespaced", "Cluster"), "names": map[string]any{"plural": plural, "singular": wire.Scope, "kind": kind, "listKind": kind + "List"}, "versions": versions}}
}

// structural returns a structural schema of an object.
func (g *G) structural() any {
	if g.chance(8) {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	spec := map[string]any{"a": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}, "list": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}
	for range g.IntN(4) {
		spec[one(g, "a", "b", "c", "n", "list", "odd name", "$x", "")] = g.schema(0)
	}
	root := map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": spec}, "status": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}}}
	if g.chance(4) {
		root["x-kubernetes-validations"] = g.rules()
	}
	return root
}

// schema returns a random schema.
func (g *G) schema(depth int) map[string]any {
	s := map[string]any{}
	switch kind := one(g, "string", "integer", "number", "boolean", "array", "object", "int-or-string", "any"); kind {
	case "array":
		s["type"] = "array"
		s["items"] = any(map[string]any{"type": "string"})
		if depth < 3 {
			s["items"] = g.schema(depth + 1)
		}
		if g.chance(2) {
			s["x-kubernetes-list-type"] = one(g, "set", "map", "atomic", "bogus", "")
		}
		if g.chance(3) {
			s["x-kubernetes-list-map-keys"] = one[any](g, []any{"name"}, []any{"name", "name"}, []any{})
			s["items"] = map[string]any{"type": "object", "required": one[any](g, []any{"name"}, []any{}), "properties": map[string]any{"name": g.schema(3)}}
		}
	case "object":
		s["type"] = "object"
		if depth < 3 {
			s[one(g, "properties", "properties", "additionalProperties")] = one[any](g, map[string]any{"x": g.schema(depth + 1), "name": g.schema(depth + 1)}, map[string]any{"x": g.schema(depth + 1)}, g.schema(depth+1), true, false)
		}
		if g.chance(4) {
			s["x-kubernetes-map-type"] = one(g, "atomic", "granular", "bogus")
		}
	case "int-or-string":
		s["x-kubernetes-int-or-string"] = true
	case "any":
		s["x-kubernetes-preserve-unknown-fields"] = true
	default:
		s["type"] = kind
	}
	for range g.IntN(3) {
		g.keyword(s, depth)
	}
	return s
}

// keyword adds a keyword to a schema, which may conflict with the rest.
func (g *G) keyword(s map[string]any, depth int) {
	switch g.IntN(22) {
	case 0:
		s["default"] = g.anything(6)
	case 1:
		s["enum"] = one[any](g, []any{"a", "b"}, []any{}, []any{1, "1"}, []any{"a", "a"}, nil)
	case 2:
		s["nullable"] = g.chance(2)
	case 3:
		s["format"] = one(g, "date-time", "int32", "int64", "byte", "bogus", "uuid", "double")
	case 4:
		s[one(g, "minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")] = one[any](g, 0, 1, -1, 10, raw("1.5"), "x")
	case 5:
		s["pattern"] = one(g, "^a+$", "[", "(?=x)", "", "\\p{L}", "a{2000}")
	case 6:
		s["x-kubernetes-validations"] = g.rules()
	case 7:
		s["uniqueItems"] = g.chance(2)
	case 8:
		s["additionalProperties"] = one[any](g, true, false, map[string]any{"type": "string"})
	case 9:
		s[one(g, "allOf", "anyOf", "oneOf")] = one[any](g, []any{map[string]any{"type": "string"}}, []any{map[string]any{"required": []any{"x"}}}, []any{map[string]any{"properties": map[string]any{"x": map[string]any{"minimum": 1}}}}, []any{map[string]any{"default": 1}}, []any{}, []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}})
	case 10:
		s["not"] = one[any](g, map[string]any{"required": []any{"x"}}, map[string]any{"type": "string"}, map[string]any{})
	case 11:
		s["$ref"] = "#/definitions/x"
	case 12:
		s["type"] = one[any](g, "string", "bogus", "", "null", []any{"string"})
	case 13:
		s["x-kubernetes-embedded-resource"] = g.chance(2)
	case 14:
		s["x-kubernetes-preserve-unknown-fields"] = one[any](g, true, false, "x")
	case 15:
		s["required"] = one[any](g, []any{"x"}, []any{"x", "x"}, []any{}, "x")
	case 16:
		s[one(g, "title", "description", "id", "example", "externalDocs", "definitions", "dependencies", "patternProperties", "additionalItems", "bogus", "$schema")] = one[any](g, "x", map[string]any{}, map[string]any{"x": map[string]any{}})
	case 17:
		s["x-kubernetes-int-or-string"] = g.chance(2)
	case 18:
		s["exclusiveMinimum"] = g.chance(2)
	case 19:
		s["items"] = one[any](g, []any{map[string]any{"type": "string"}}, map[string]any{}, g.schema(3))
	case 20:
		s["x-kubernetes-list-type"] = one(g, "set", "map", "atomic")
	case 21:
		if depth < 4 {
			s["properties"] = map[string]any{one(g, "x", "metadata", "apiVersion"): g.schema(depth + 2)}
		}
	}
}

// rules returns CEL rules, valid and invalid.
func (g *G) rules() any {
	rule := map[string]any{"rule": one(g, "true", "self.spec.n > 0", "self == oldSelf", "has(self.x)", "size(self) < 5", "self", "", "self.x.y.z", "1", "self.all(x, x > 0)", "self.matches('[')", "self >", "oldSelf.orValue(1) > 0", "self.list.all(a, self.list.all(b, self.list.all(c, true)))", "quantity('1') == quantity('1')", "self.isSorted()", "cel.bind(x, self, true)")}
	if g.chance(2) {
		rule["message"] = one(g, "no", "", "a\nb", strings.Repeat("m", 2050))
	}
	if g.chance(5) {
		rule["messageExpression"] = one(g, "'x'", "1", "self", "string(self)", "'", "", "'a' + 'b'")
	}
	if g.chance(5) {
		rule["reason"] = one(g, "FieldValueInvalid", "FieldValueForbidden", "Bogus", "")
	}
	if g.chance(5) {
		rule["fieldPath"] = one(g, ".spec", ".spec.a", ".bogus", "spec", ".spec.list[0]", "", ".x")
	}
	if g.chance(6) {
		rule["optionalOldSelf"] = g.chance(2)
	}
	if g.chance(6) {
		return []any{rule, clone(rule)}
	}
	return []any{rule}
}

// mutateDefinition changes a field of a definition.
func (g *G) mutateDefinition(d map[string]any, r *Resource) {
	spec := at(d, "spec")
	names := at(spec, "names")
	switch g.IntN(14) {
	case 0:
		names[one(g, "plural", "singular", "kind", "listKind")] = one[any](g, "", "Upper", "a.b", "others", "Other", strings.Repeat("x", 64), "é", nil)
	case 1:
		names["shortNames"] = one[any](g, []any{"b"}, []any{"a", "a"}, []any{""}, []any{"UP"}, []any{wire.Scope}, []any{"q"})
	case 2:
		names["categories"] = one[any](g, []any{"all"}, []any{""}, []any{"a", "a"}, []any{"UP"})
	case 3:
		spec["group"] = one[any](g, "", "example", "k8s.io", "x.k8s.io", "UP.example.com", "other.example.com", nil)
	case 4:
		spec["scope"] = one[any](g, "", "bogus", "Cluster", "Namespaced", nil)
	case 5:
		spec["conversion"] = one[any](g, map[string]any{"strategy": "None"}, map[string]any{"strategy": "Webhook"}, map[string]any{"strategy": "bogus"}, map[string]any{}, map[string]any{"strategy": "None", "webhook": map[string]any{"conversionReviewVersions": []any{"v1"}}},
			map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": one[any](g, []any{"v1"}, []any{"v9"}, []any{}, []any{"v1", "v1"}, []any{"a b"}), "clientConfig": one[any](g, map[string]any{"url": "https://127.0.0.1:1/x"}, map[string]any{"url": "http://x"}, map[string]any{"url": "https://u:p@x/"}, map[string]any{"url": "https://x/?a=b#c"}, map[string]any{"service": map[string]any{"name": "a", "namespace": "b", "path": one(g, "/", "x", "//", "/a/../b")}}, map[string]any{"service": map[string]any{"name": "", "namespace": "", "port": 0}}, map[string]any{}, map[string]any{"url": "https://x", "service": map[string]any{"name": "a", "namespace": "b"}}, map[string]any{"url": "https://x", "caBundle": one(g, "bogus", "AAEC")})}})
	case 6:
		spec["preserveUnknownFields"] = one[any](g, true, false, nil)
	case 7:
		at(d, "metadata")["name"] = one(g, "bogus", "others.rich.example.com", "a.b", "UP."+wire.Scope+".example.com")
	case 8:
		at(d, "metadata")["annotations"] = one[any](g, map[string]any{"api-approved.kubernetes.io": "https://x"}, map[string]any{"api-approved.kubernetes.io": "unapproved, x"}, map[string]any{"a": "b"})
		if g.chance(2) {
			spec["group"] = "x.k8s.io"
			at(d, "metadata")["name"] = text(names["plural"]) + ".x.k8s.io"
		}
	case 9:
		d["status"] = map[string]any{"storedVersions": one[any](g, []any{"v1"}, []any{"v9"}, []any{}), "conditions": []any{}, "acceptedNames": map[string]any{"plural": "x", "kind": "X"}}
	default:
		g.mutate(d, r.Schema)
	}
}
