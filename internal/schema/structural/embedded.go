package structural

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// embeddedErrors returns the errors of the embedded objects in v at at, as objects of the Kubernetes
// API.
func (n *node) embeddedErrors(ctx context.Context, v any, at *field.Path) (errs field.ErrorList) {
	n.embeddedObjects(at, v, func(at *field.Path, obj map[string]any) error {
		errs = append(errs, embeddedObjectErrors(ctx, obj, at)...)
		return nil
	})
	return errs
}

func embeddedObjectErrors(ctx context.Context, obj map[string]any, at *field.Path) (errs field.ErrorList) {
	for _, k := range []string{"apiVersion", "kind"} {
		if _, ok := obj[k]; !ok {
			errs = append(errs, field.Required(at.Child(k), ""))
		}
	}
	for _, k := range []string{"apiVersion", "kind"} {
		v, ok := obj[k]
		if !ok {
			continue
		}
		at := at.Child(k)
		s, ok := v.(string)
		switch {
		case !ok:
			errs = append(errs, field.Invalid(at, v, "must be a string"))
		case s == "":
			errs = append(errs, field.Invalid(at, s, "must not be empty"))
		case k == "apiVersion":
			if _, err := runtimeschema.ParseGroupVersion(s); err != nil {
				errs = append(errs, field.Invalid(at, s, err.Error()))
			}
		default:
			if wrong := validation.IsDNS1035Label(strings.ToLower(s)); len(wrong) > 0 {
				errs = append(errs, field.Invalid(at, s, "may have mixed case, but should otherwise match: "+strings.Join(wrong, ",")))
			}
		}
	}
	if v, ok := obj["metadata"]; ok {
		errs = append(errs, metadataErrors(ctx, v, at.Child("metadata"))...)
	}
	return errs
}

func metadataErrors(ctx context.Context, v any, at *field.Path) field.ErrorList {
	meta := &metav1.ObjectMeta{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.AppendJSON(nil, v), meta); err != nil {
		return field.ErrorList{field.Invalid(at, v, err.Error())}
	}
	if meta.Name == "" {
		meta.Name = "unnamed" // an embedded object may have no name
	}
	return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, meta, nil, meta.Namespace != "", validSegment, at, true)
}

func validSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
