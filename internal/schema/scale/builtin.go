package scale

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// BuiltIn returns the subresource of a built-in kind with replicas at the usual path.
func BuiltIn(of kschema.GroupVersionResource, selector func(obj object.Tree) (string, error)) resource.Subresource {
	const wanted = ".spec.replicas"
	s := &Scale{
		Version: of.GroupVersion(), Spec: wanted, Status: ".status.replicas",
		Selector: selector,
		Owned:    managedfields.ResourcePathMappings{of.GroupVersion().String(): Owned(wanted)},
		Check:    func(obj, shown object.Tree) error { return check(of.GroupResource(), obj, shown) },
	}
	return s.Subresource(nil)
}

// check rejects an invalid Scale, or one of another object.
func check(of kschema.GroupResource, obj, shown object.Tree) error {
	errs := metavalidation.ValidateManagedFields(object.AccessorOf(shown).GetManagedFields(), field.NewPath("metadata", "managedFields"))
	spec, _ := shown["spec"].(object.Tree)
	if n, _ := spec["replicas"].(int64); n < 0 {
		errs = append(errs, apivalidation.ValidateNonnegativeField(n, field.NewPath("spec", "replicas"))...)
	}
	if len(errs) > 0 {
		return status.Invalid(shownKind.GroupKind(), object.Name(obj), errs)
	}
	if sent, uid := object.UID(shown), object.UID(obj); sent != "" && sent != uid {
		of.Resource += "/scale"
		return status.Conflict(of, object.Name(obj), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", sent, uid))
	}
	return nil
}

// LabelSelector is the selector of an object that has a metav1.LabelSelector.
func LabelSelector(obj object.Tree) (string, error) {
	spec, _ := obj["spec"].(object.Tree)
	tree, ok := spec["selector"].(object.Tree)
	if !ok {
		return "", nil
	}
	typed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, typed); err != nil {
		return "", status.BadRequest("%v", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(typed)
	if err != nil {
		return "", status.BadRequest("%v", err)
	}
	return selector.String(), nil
}

// LabelSet is the selector of an object that has a map of labels.
func LabelSet(obj object.Tree) (string, error) {
	spec, _ := obj["spec"].(object.Tree)
	tree, _ := spec["selector"].(object.Tree)
	set := labels.Set{}
	for k, v := range tree {
		set[k], _ = v.(string)
	}
	return labels.SelectorFromSet(set).String(), nil
}
