package crd

import (
	"context"
	"fmt"
	"maps"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// beta is the version that a cluster stores CustomResourceDefinitions in. It is
// not served; what is found in it is read as v1, and is v1 once it is written
// again, which Kubernetes reads as well.
const beta = Group + "/v1beta1"

// convertBeta is the Convert of the kind CustomResourceDefinition.
func convertBeta(_ context.Context, objs []map[string]any, version string) ([]map[string]any, error) {
	for _, obj := range objs {
		if apiVersion := object.APIVersion(obj); apiVersion != beta || version != "v1" {
			return nil, fmt.Errorf("cannot make a CustomResourceDefinition of %s one of %s", apiVersion, version)
		}
		fromBeta(obj)
	}
	return objs, nil
}

// upgrade returns the JSON of a stored CustomResourceDefinition as v1.
func upgrade(data []byte) ([]byte, error) {
	t := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &t); err != nil {
		return nil, fmt.Errorf("cannot read the stored CustomResourceDefinition: %w", err)
	}
	fromBeta(t)
	return object.AppendJSON(nil, t), nil
}

// fromBeta makes a v1 object of a v1beta1 one, which it changes.
func fromBeta(t object.Tree) {
	t["apiVersion"] = Group + "/v1"
	spec, ok := t["spec"].(object.Tree)
	if !ok {
		return
	}
	if missing(spec, "scope") {
		spec["scope"] = string(v1.NamespaceScoped)
	}
	versions, _ := spec["versions"].([]any)
	if name, _ := spec["version"].(string); len(versions) == 0 && name != "" {
		versions = []any{object.Tree{"name": name, "served": true, "storage": true}}
		spec["versions"] = versions
	}
	// What is said for all versions counts for each.
	for shared, own := range map[string]string{
		"validation": "schema", "subresources": "subresources",
		"additionalPrinterColumns": "additionalPrinterColumns", "selectableFields": "selectableFields",
	} {
		if said := spec[shared]; said != nil {
			for _, v := range versions {
				if v, ok := v.(object.Tree); ok {
					v[own] = object.Clone(said)
				}
			}
		}
		delete(spec, shared)
	}
	delete(spec, "version")
	for _, v := range versions {
		if v, ok := v.(object.Tree); ok {
			columnsFromBeta(v)
		}
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

// columnsFromBeta spells the paths of columns as v1 does.
func columnsFromBeta(version object.Tree) {
	columns, _ := version["additionalPrinterColumns"].([]any)
	for _, c := range columns {
		if c, ok := c.(object.Tree); ok {
			if path, ok := c["JSONPath"]; ok {
				delete(c, "JSONPath")
				c["jsonPath"] = path
			}
		}
	}
}

// conversionFromBeta puts what is about the webhook of a conversion together.
func conversionFromBeta(spec object.Tree) {
	c, ok := spec["conversion"].(object.Tree)
	if !ok {
		return
	}
	c = maps.Clone(c)
	spec["conversion"] = c
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
