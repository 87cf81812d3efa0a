// Package oracle compares anykind with Kubernetes' own packages: both get the same input, and the
// output must be the same.
//
// A module of its own keeps those packages out of the product.
package oracle

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// Upstream is the schema of a custom resource as kube-apiserver uses it.
type Upstream struct{ structural *structuralschema.Structural }

// NewUpstream prepares a schema as kube-apiserver does before it serves it.
func NewUpstream(props *apiextensionsv1.JSONSchemaProps) (*Upstream, error) {
	in, err := internal(props)
	if err != nil {
		return nil, err
	}
	s, err := structuralschema.NewStructural(in)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	return &Upstream{s}, nil
}

func internal(props *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	out := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props.DeepCopy(), out, nil)
	return out, err
}

// Complete processes an object as kube-apiserver does between decoding and validation: one from a
// client, or, if stored, one from the store.
func (u *Upstream) Complete(obj map[string]any, stored bool) (unknown []string, err error) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{
		DropMalformedFields: stored, ReturnUnknownFieldPaths: true,
	})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(obj, u.structural, true, structuralschema.UnknownFieldPathOptions{
		TrackUnknownFieldPaths: true,
	})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, u.structural)
	ferr, more := objectmeta.CoerceWithOptions(nil, obj, u.structural, false, objectmeta.CoerceOptions{
		DropInvalidFields: stored, ReturnUnknownFieldPaths: true,
	})
	if ferr != nil {
		return nil, fmt.Errorf("%w", ferr)
	}
	if found {
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			return nil, err
		}
	}
	defaulting.Default(obj, u.structural)
	return append(unknown, more...), nil
}
