package check

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// listsAndMaps checks the merge strategies of lists and maps.
func (c *ruleCheck) listsAndMaps(p *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	listType := ""
	if p.XListType != nil {
		listType = *p.XListType
	}
	if p.XMapType != nil {
		c.hasType(p, "object", "x-kubernetes-map-type", at)
		c.oneOf(*p.XMapType, at.Child("x-kubernetes-map-type"), "atomic", "granular")
	}
	if p.XListType != nil {
		if c.hasType(p, "array", "x-kubernetes-list-type", at) && listType == "set" && !c.tolerate.MergedSetItems {
			c.setItems(jsonschema.Items(p), at.Child("items"))
		}
		c.oneOf(listType, at.Child("x-kubernetes-list-type"), "atomic", "set", "map")
	}
	if len(p.XListMapKeys) > 0 && listType != "map" {
		const detail = "must be map if x-kubernetes-list-map-keys is non-empty"
		if p.XListType == nil {
			c.add(field.Required(at.Child("x-kubernetes-list-type"), detail))
		} else {
			c.add(field.Invalid(at.Child("x-kubernetes-list-type"), listType, detail))
		}
	}
	if listType == "map" {
		c.mapKeys(p, at)
	}
	if (listType == "map" || listType == "set") && !c.tolerate.ListKeys {
		c.mergedItems(p, listType, at)
	}
}

// hasType reports whether the type is the one that an extension needs.
func (c *ruleCheck) hasType(p *apiextensionsv1.JSONSchemaProps, typ, extension string, at *field.Path) bool {
	detail := "must be " + typ + " if " + extension + " is specified"
	switch p.Type {
	case typ:
		return true
	case "":
		c.add(field.Required(at.Child("type"), detail))
	default:
		c.add(field.Invalid(at.Child("type"), p.Type, detail))
	}
	return false
}

func (c *ruleCheck) oneOf(value string, at *field.Path, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.add(field.NotSupported(at, value, allowed))
	}
}

// setItems checks that the items of a set are compared as a whole.
func (c *ruleCheck) setItems(items *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	const detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch {
	case items == nil:
	case items.Type == "array" && items.XListType != nil && *items.XListType != "atomic":
		c.add(field.Invalid(at.Child("x-kubernetes-list-type"), items.XListType, detail))
	case items.Type == "object" && (items.XMapType == nil || *items.XMapType != "atomic"):
		// Upstream shows the list type here.
		c.add(field.Invalid(at.Child("x-kubernetes-map-type"), items.XListType, detail))
	}
}

// mapKeys checks the keys of a list that is a map.
func (c *ruleCheck) mapKeys(p *apiextensionsv1.JSONSchemaProps, at *field.Path) {
	keysAt := at.Child("x-kubernetes-list-map-keys")
	if len(p.XListMapKeys) == 0 {
		c.add(field.Required(keysAt, "must not be empty if x-kubernetes-list-type is map"))
	}
	items := jsonschema.Items(p)
	switch {
	case p.Items == nil:
		c.add(field.Required(at.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
		return
	case items == nil:
		c.add(field.Invalid(at.Child("items"), jsonschema.GoNames{Value: p.Items}, "must only have a single schema if x-kubernetes-list-type is map"))
		return
	case items.Type != "object":
		c.add(field.Invalid(at.Child("items").Child("type"), items.Type, "must be object if parent array's x-kubernetes-list-type is map"))
		return
	}
	for i, k := range p.XListMapKeys {
		key, ok := items.Properties[k]
		switch {
		case !ok:
			c.add(field.Invalid(keysAt, p.XListMapKeys, "entries must all be names of item properties"))
		case key.Type == "array" || key.Type == "object":
			c.add(field.Invalid(at.Child("items").Child("properties").Key(k).Child("type"), items.Type,
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if slices.Contains(p.XListMapKeys[:i], k) {
			c.add(field.Invalid(keysAt, p.XListMapKeys, "must not contain duplicate entries"))
		}
	}
}

// mergedItems checks that items and their keys are always there.
func (c *ruleCheck) mergedItems(p *apiextensionsv1.JSONSchemaProps, listType string, at *field.Path) {
	items := jsonschema.Items(p)
	if items == nil {
		return
	}
	at = at.Child("items")
	if items.Nullable {
		c.add(field.Forbidden(at.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+listType))
	}
	if listType != "map" {
		return
	}
	for _, k := range p.XListMapKeys {
		key, ok := items.Properties[k]
		if !ok {
			continue
		}
		at := at.Child("properties").Key(k)
		if !slices.Contains(items.Required, k) && key.Default == nil {
			c.add(field.Required(at.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if key.Nullable {
			c.add(field.Forbidden(at.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
}
