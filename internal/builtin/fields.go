package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// value returns what is at a path of field names, or nil.
func value(obj map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		obj, _ = obj[name].(map[string]any)
	}
	return obj[path[len(path)-1]]
}

// text returns the string at a path, or "".
func text(obj map[string]any, path ...string) string {
	s, _ := value(obj, path...).(string)
	return s
}

// tree returns the object at a path, or nil.
func tree(obj map[string]any, path ...string) map[string]any {
	m, _ := value(obj, path...).(map[string]any)
	return m
}

// list returns the list at a path, or nil.
func list(obj map[string]any, path ...string) []any {
	l, _ := value(obj, path...).([]any)
	return l
}

// child returns the object in a field, which it makes if there is none.
func child(obj map[string]any, name string) map[string]any {
	m, ok := obj[name].(map[string]any)
	if !ok {
		m = map[string]any{}
		obj[name] = m
	}
	return m
}

// put sets a field to a copy of value, or removes it if there is none.
func put(obj map[string]any, name string, value any) {
	if value == nil {
		delete(obj, name)
		return
	}
	obj[name] = object.Clone(value)
}

// setDefault sets a field that is empty or not there.
func setDefault(obj map[string]any, name, value string) {
	if s, _ := obj[name].(string); s == "" && obj != nil {
		obj[name] = value
	}
}

// setMissing sets a field that is not there. It is for those that are pointers in
// Go, of which an empty one is there.
func setMissing(obj map[string]any, name string, value any) {
	if obj[name] == nil && obj != nil {
		obj[name] = value
	}
}

// emptyNulls makes the nulls of a map of bytes what they are once Kubernetes has
// stored them.
func emptyNulls(obj map[string]any, name string) {
	for key, v := range tree(obj, name) {
		if v == nil {
			tree(obj, name)[key] = ""
		}
	}
}

// immutable says that a field may not change.
func immutable(value, old any, at *field.Path) field.ErrorList {
	if object.Equal(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "field is immutable")}
}

// frozen checks an object that says of itself that its data will not change.
func frozen(obj, old map[string]any, fields ...string) field.ErrorList {
	if old["immutable"] != true {
		return nil
	}
	const detail = "field is immutable when `immutable` is set"
	var errs field.ErrorList
	if obj["immutable"] != true {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), detail))
	}
	for _, f := range fields {
		if !object.Equal(tree(obj, f), tree(old, f)) {
			errs = append(errs, field.Forbidden(field.NewPath(f), detail))
		}
	}
	return errs
}

// metaFinalizers checks that the finalizers in the metadata of a core kind are
// qualified or well known; that they are well formed is checked for every kind.
func metaFinalizers(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	for i, f := range object.Finalizers(obj) {
		errs = append(errs, knownFinalizer(f, field.NewPath("metadata", "finalizers").Index(i))...)
	}
	return errs
}

func knownFinalizer(name string, at *field.Path) field.ErrorList {
	switch name {
	case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		return nil
	}
	if strings.Contains(name, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")}
}

// invalids says every one of the details of a value.
func invalids(at *field.Path, value any, details []string) (errs field.ErrorList) {
	for _, detail := range details {
		errs = append(errs, field.Invalid(at, value, detail))
	}
	return errs
}

func atMost(n int) string { return fmt.Sprintf("can have at most %v characters", n) }

// typed returns an object as its Go type has it, nil for none. What others have
// stored in another form than that of the type is left out.
func typed[T any](obj map[string]any) *T {
	if obj == nil {
		return nil
	}
	out := new(T)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(obj, out)
	return out
}
