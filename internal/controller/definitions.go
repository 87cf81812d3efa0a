package controller

import (
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/resource"
)

// A Definition is a stored CustomResourceDefinition.
type Definition struct {
	*Header
	Kind   *resource.Definition // of CustomResourceDefinitions
	Object apiextensionsv1.CustomResourceDefinition
}

// DefinitionPrefix returns the key prefix of CustomResourceDefinitions.
func (o *Objects) DefinitionPrefix() string {
	return o.Prefix(apiextensionsv1.GroupName, "customresourcedefinitions")
}

// Definition returns the stored CustomResourceDefinition of that name, or nil.
func (o *Objects) Definition(ctx context.Context, name string) (*Definition, error) {
	d := o.Lookup(apiextensionsv1.GroupName, "customresourcedefinitions")
	if d == nil {
		return nil, nil
	}
	h, err := o.Read(ctx, d.Key("", name))
	if err != nil || h == nil {
		return nil, err
	}
	definition := &Definition{Header: h, Kind: d}
	return definition, json.Unmarshal(h.JSON, &definition.Object)
}
