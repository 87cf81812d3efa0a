package infer

import (
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// conditionsOf reports whether the items of a list are conditions, as many kinds have them in their
// status.
func conditionsOf(name string, items *place) bool {
	if name != "conditions" || !items.is(ofObject) || items.nulls > 0 {
		return false
	}
	for _, field := range []string{"type", "status"} {
		p := items.object.byName[field]
		if p == nil || p.seen < items.seen || !p.is(ofString) || p.nulls > 0 {
			return false
		}
	}
	for value := range items.object.byName["status"].text.values {
		if value != "True" && value != "False" && value != "Unknown" {
			return false
		}
	}
	return !items.object.byName["status"].text.overflowed
}

// condition returns the schema of a condition: metav1.Condition, and further fields of the samples.
func (b *builder) condition(at path, items *place) v1.JSONSchemaProps {
	s := v1.JSONSchemaProps{Type: string(ofObject), Properties: map[string]v1.JSONSchemaProps{}}
	f := &items.object
	known := map[string]v1.JSONSchemaProps{
		"type":               {Type: "string"}, // further types are possible
		"status":             {Type: "string", Enum: []v1.JSON{asJSON("True"), asJSON("False"), asJSON("Unknown")}},
		"lastTransitionTime": {Type: "string", Format: "date-time"},
		"message":            {Type: "string"},
		"observedGeneration": {Type: "integer", Format: "int64"},
		"reason":             {Type: "string"},
	}
	for name, standard := range known {
		p := f.byName[name]
		if p == nil || p.nulls == 0 && p.is(kind(standard.Type)) && (name != "lastTransitionTime" || p.text.is(dateTime)) {
			s.Properties[name] = standard
		}
	}
	for _, name := range sorted(f.byName) {
		if _, ok := s.Properties[name]; !ok {
			s.Properties[name] = b.schema(at.at(name), name, f.byName[name])
		}
	}
	for _, name := range []string{"lastTransitionTime", "message", "reason", "status", "type"} {
		if p := f.byName[name]; name == "type" || name == "status" || p != nil && p.seen == f.seen && p.nulls == 0 && b.enough(items) {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// isSelector reports whether the objects are label selectors.
func (f *fields) isSelector() bool {
	if len(f.byName) == 0 {
		return false
	}
	for name, p := range f.byName {
		switch name {
		case "matchLabels":
			if !p.is(ofObject) || p.nulls > 0 || !p.object.isMap(name) || !p.object.together().is(ofString) || p.object.together().nulls > 0 {
				return false
			}
		case "matchExpressions":
			items := p.list.each()
			if !p.is(ofArray) || p.nulls > 0 || items.seen == 0 || !items.is(ofObject) || items.nulls > 0 {
				return false
			}
			for field, p := range items.object.byName {
				known := (field == "key" || field == "operator") && p.is(ofString) && p.nulls == 0 && p.seen == items.seen ||
					field == "values" && p.is(ofArray) && p.nulls == 0 && (p.list.each().seen == 0 || p.list.each().is(ofString) && p.list.each().nulls == 0)
				if !known {
					return false
				}
			}
			if items.object.byName["key"] == nil || items.object.byName["operator"] == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// selector is the schema of a label selector.
func selector() v1.JSONSchemaProps {
	text := v1.JSONSchemaProps{Type: "string"}
	list := func(items v1.JSONSchemaProps) v1.JSONSchemaProps {
		return v1.JSONSchemaProps{Type: "array", Items: &v1.JSONSchemaPropsOrArray{Schema: &items}, XListType: new("atomic")}
	}
	return v1.JSONSchemaProps{Type: "object", XMapType: new("atomic"), Properties: map[string]v1.JSONSchemaProps{
		"matchLabels": {Type: "object", AdditionalProperties: &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &text}},
		"matchExpressions": list(v1.JSONSchemaProps{Type: "object", Required: []string{"key", "operator"}, Properties: map[string]v1.JSONSchemaProps{
			"key": text, "operator": text, "values": list(text),
		}}),
	}}
}
