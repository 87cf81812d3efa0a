package oracle

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
)

// A Validator validates objects by a schema as kube-apiserver does, without expressions (CEL) and
// without the object's own metadata.
type Validator struct {
	structural    *structuralschema.Structural
	whole, status validation.SchemaValidator
}

// NewValidator prepares a served version as kube-apiserver does.
func NewValidator(props *apiextensionsv1.JSONSchemaProps) (*Validator, error) {
	in, err := internal(props)
	if err != nil {
		return nil, err
	}
	v := &Validator{}
	if v.structural, err = structuralschema.NewStructural(in); err != nil {
		return nil, err
	}
	if v.whole, _, err = validation.NewSchemaValidator(in); err != nil {
		return nil, err
	}
	if status, ok := in.Properties["status"]; ok {
		if v.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Create validates a new object.
func (v *Validator) Create(ctx context.Context, obj map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, obj, v.whole)
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, v.structural, false)...)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, obj)...)
}

// Update validates an object that replaces old.
func (v *Validator) Update(ctx context.Context, obj, old map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, obj, old, v.whole, validation.WithRatcheting(correlated))
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, v.structural, false)...)
	return append(errs, v.lists(obj, old)...)
}

// UpdateStatus validates a write of the status.
func (v *Validator) UpdateStatus(ctx context.Context, obj, old map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.structural})
	var errs field.ErrorList
	if status, ok := obj["status"]; ok {
		errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], v.status,
			validation.WithRatcheting(correlated.Key("status")))
	}
	return append(errs, v.lists(obj, old)...)
}

func (v *Validator) lists(obj, old map[string]any) field.ErrorList {
	if len(listtype.ValidateListSetsAndMaps(nil, v.structural, old)) > 0 {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, v.structural, obj)
}
