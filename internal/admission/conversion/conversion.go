// Package conversion rejects conversion rules that do not fit the definition that they are for.
//
// The rules are objects of the kind CRDConversionConfig of the declarative-conversion-operator, whose
// CustomResourceDefinition users install like any other. A controller puts accepted rules into the
// definition.
package conversion

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/conversion"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// configs is the key prefix of CRDConversionConfigs.
var configs = resource.CustomPrefix(conversion.Resource.Group, conversion.Resource.Resource)

// definitions is the key prefix of CustomResourceDefinitions.
var definitions = resource.CustomPrefix(v1.GroupName, "customresourcedefinitions")

// maxSpec limits the rules of a definition: they become one of its annotations.
const maxSpec = 200 << 10

// A Validator is a registry.Validator of CRDConversionConfigs.
type Validator struct{ Cache *watchcache.Cache }

// Validate rejects rules that do not fit their definition, and a second CRDConversionConfig for one.
// Rules for an unknown definition are accepted with a warning.
func (v *Validator) Validate(ctx context.Context, a *registry.Admission) error {
	if a.Target.Definition.GroupResource() != conversion.Resource || a.Target.Subresource != "" || a.Object == nil ||
		a.Operation != registry.Create && a.Operation != registry.Update || object.Deleting(a.Object) {
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	if old != nil && object.Equal(old["spec"], a.Object["spec"]) {
		return nil
	}
	refuse := func(errs ...*field.Error) error {
		d := a.Target.Definition
		return status.Invalid(schema.GroupKind{Group: d.Group, Kind: d.Kind}, object.Name(a.Object), errs)
	}
	at := field.NewPath("spec")
	spec := object.AppendJSON(nil, a.Object["spec"])
	if len(spec) > maxSpec {
		return refuse(field.TooLong(at, "", maxSpec))
	}
	rules, err := conversion.Parse(spec)
	if err != nil {
		return refuse(field.Invalid(at, a.Object["spec"], err.Error()))
	}
	target := rules.TargetCRD.Name
	if other, err := v.other(ctx, target, object.Name(a.Object)); err != nil {
		return err
	} else if other != "" {
		return refuse(field.Invalid(at.Child("targetCRD", "name"), target, fmt.Sprintf("the CRDConversionConfig %s has the rules of this definition", other)))
	}
	found, err := v.Cache.Resource(definitions).Get(ctx, definitions+target)
	if err != nil {
		return registry.StorageError(err)
	}
	if found == nil {
		a.Warn(fmt.Sprintf("there is no CustomResourceDefinition %q yet: the rules are checked when it is created", target))
		return nil
	}
	definition, err := definitionOf(found)
	if err != nil {
		return status.Internal(err)
	}
	if _, ok := definition.Annotations[conversion.Annotation]; ok {
		if own, _ := conversion.Written(definition); own == nil || own.Config == "" {
			return refuse(field.Invalid(at.Child("targetCRD", "name"), target, fmt.Sprintf("the definition has rules in its annotation %s: remove it first", conversion.Annotation)))
		}
	}
	report := rules.Check(definition, at)
	for _, w := range report.Warnings {
		a.Warn(w)
	}
	if errs := report.Refused(); len(errs) > 0 {
		return refuse(errs...)
	}
	return nil
}

func definitionOf(o *watchcache.Object) (*v1.CustomResourceDefinition, error) {
	data, err := o.JSON()
	if err != nil {
		return nil, err
	}
	out := &v1.CustomResourceDefinition{}
	return out, json.Unmarshal(data, out)
}

// other returns the name of another CRDConversionConfig for a definition, or "".
func (v *Validator) other(ctx context.Context, target, name string) (string, error) {
	snapshot, err := v.Cache.Resource(configs).Snapshot(ctx, kv.Latest)
	if err != nil {
		return "", registry.StorageError(err)
	}
	for o := range snapshot.Scan(configs, "") {
		data, err := o.JSON()
		if err != nil {
			continue // it has no effect either
		}
		var config struct {
			Metadata struct{ Name string }
			Spec     conversion.Rules
		}
		if json.Unmarshal(data, &config) == nil && config.Metadata.Name != name && config.Spec.TargetCRD.Name == target {
			return config.Metadata.Name, nil
		}
	}
	return "", nil
}
