package crd

import (
	"bytes"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// beta is the version in which a cluster stores CustomResourceDefinitions. It is not served; only a
// store shared with clusters needs it.
const beta = Group + "/v1beta1"

// FromBeta returns the JSON, as v1, of a CustomResourceDefinition as clusters store
// it. It returns data itself if that is not of v1beta1.
func FromBeta(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte(`"`+beta+`"`)) {
		return data, nil
	}
	return rewrite(data, beta, fromBeta)
}

// ToBeta returns the JSON of a v1 CustomResourceDefinition as clusters store it. FromBeta reverses it.
func ToBeta(data []byte) ([]byte, error) {
	return rewrite(data, Group+"/v1", toBeta)
}

// rewrite applies convert to an object of one version and returns its JSON.
func rewrite(data []byte, of string, convert func(object.Tree)) ([]byte, error) {
	t := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &t); err != nil {
		return nil, fmt.Errorf("cannot read the stored CustomResourceDefinition: %w", err)
	}
	if object.APIVersion(t) != of {
		return data, nil
	}
	convert(t)
	return object.AppendJSON(nil, t), nil
}

// forAll maps fields of v1beta1 for all versions to the fields of each version in v1.
var forAll = map[string]string{
	"schema": "validation", "subresources": "subresources",
	"additionalPrinterColumns": "additionalPrinterColumns", "selectableFields": "selectableFields",
}

// toBeta converts t from v1 to v1beta1 in place.
func toBeta(t object.Tree) {
	t["apiVersion"] = beta
	spec, ok := t["spec"].(object.Tree)
	if !ok {
		return
	}
	keep, _ := spec["preserveUnknownFields"].(bool)
	spec["preserveUnknownFields"] = keep // the default in v1beta1 is true
	conversionToBeta(spec)
	versions := trees(spec["versions"])
	if len(versions) == 0 {
		return
	}
	spec["version"] = versions[0]["name"]
	for _, v := range versions {
		columns(v, "jsonPath", "JSONPath")
	}
	for own, shared := range forAll {
		if value, ok := agreed(versions, own); ok {
			for _, v := range versions {
				delete(v, own)
			}
			if value != nil {
				spec[shared] = value
			}
		}
	}
}

// agreed returns the value of a field if it is equal in all versions.
func agreed(versions []object.Tree, field string) (any, bool) {
	said := func(v object.Tree) any {
		if list, ok := v[field].([]any); ok && len(list) == 0 {
			return nil
		}
		return v[field]
	}
	first := said(versions[0])
	for _, v := range versions[1:] {
		if !object.Equal(said(v), first) {
			return nil, false
		}
	}
	return first, true
}

// trees returns the objects in a list.
func trees(list any) []object.Tree {
	items, _ := list.([]any)
	var out []object.Tree
	for _, item := range items {
		if t, ok := item.(object.Tree); ok {
			out = append(out, t)
		}
	}
	return out
}

// fromBeta converts t from v1beta1 to v1 in place.
func fromBeta(t object.Tree) {
	t["apiVersion"] = Group + "/v1"
	spec, ok := t["spec"].(object.Tree)
	if !ok {
		return
	}
	if missing(spec, "scope") {
		spec["scope"] = string(v1.NamespaceScoped)
	}
	if name, _ := spec["version"].(string); len(list(spec, "versions")) == 0 && name != "" {
		spec["versions"] = []any{object.Tree{"name": name, "served": true, "storage": true}}
	}
	versions := trees(spec["versions"])
	// A field for all versions applies to each.
	for own, shared := range forAll {
		value := spec[shared]
		delete(spec, shared)
		if value == nil {
			continue
		}
		for _, v := range versions {
			v[own] = object.Clone(value)
		}
	}
	delete(spec, "version")
	for _, v := range versions {
		columns(v, "JSONPath", "jsonPath")
	}
	conversionFromBeta(spec)
	switch spec["preserveUnknownFields"] {
	case nil:
		spec["preserveUnknownFields"] = true
	case false:
		delete(spec, "preserveUnknownFields")
	}
	setDefaults(t)
}

// columns renames the path field of columns for another version.
func columns(version object.Tree, was, is string) {
	for _, c := range trees(version["additionalPrinterColumns"]) {
		if path, ok := c[was]; ok {
			delete(c, was)
			c[is] = path
		}
	}
}

// conversionFromBeta moves the fields of a conversion webhook into webhook.
func conversionFromBeta(spec object.Tree) {
	c, ok := spec["conversion"].(object.Tree)
	if !ok {
		return
	}
	client, reviews := c["webhookClientConfig"], c["conversionReviewVersions"]
	delete(c, "webhookClientConfig")
	delete(c, "conversionReviewVersions")
	if list, _ := reviews.([]any); len(list) == 0 && c["strategy"] == string(v1.WebhookConverter) {
		reviews = []any{"v1beta1"}
	}
	webhook := object.Tree{}
	if client != nil {
		webhook["clientConfig"] = client
	}
	if reviews != nil {
		webhook["conversionReviewVersions"] = reviews
	}
	if len(webhook) > 0 {
		c["webhook"] = webhook
	}
}

// conversionToBeta moves the fields of a conversion webhook out of webhook.
func conversionToBeta(spec object.Tree) {
	c, _ := spec["conversion"].(object.Tree)
	webhook, ok := c["webhook"].(object.Tree)
	if !ok {
		return
	}
	delete(c, "webhook")
	if client := webhook["clientConfig"]; client != nil {
		c["webhookClientConfig"] = client
	}
	if reviews := webhook["conversionReviewVersions"]; reviews != nil {
		c["conversionReviewVersions"] = reviews
	}
}
