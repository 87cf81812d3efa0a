package verify

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// An input is another value of one field of a custom resource.
type input struct {
	path  []string // indexes of lists are numbers
	value any      // nil removes the field
}

func (i input) String() string {
	if i.value == nil {
		return "without " + strings.Join(i.path, ".")
	}
	return strings.Join(i.path, ".") + "=" + compact(i.value)
}

// apply changes a field of an object. Parents that are missing are made.
func (i input) apply(u *object) {
	u.Object, _ = changed(u.Object, i.path, runtime.DeepCopyJSONValue(i.value)).(map[string]any)
}

// changed returns the value in with another value at a path. It changes the maps and lists on the way.
func changed(in any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if list, ok := in.([]any); ok {
		index, _ := strconv.Atoi(path[0])
		list[index] = changed(list[index], path[1:], value)
		return list
	}
	fields, ok := in.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	if v := changed(fields[path[0]], path[1:], value); v != nil {
		fields[path[0]] = v
	} else {
		delete(fields, path[0])
	}
	return fields
}

// inputs returns other values for the fields of an object, as its schema allows, and those of samples. Status and metadata are no
// input of a user.
func inputs(s *apiextensionsv1.JSONSchemaProps, u *object, samples []any) (all []input) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if name != "apiVersion" && name != "kind" && name != "metadata" && name != "status" {
			p := s.Properties[name]
			all = append(all, inputsOf(&p, []string{name}, u.Object[name], valuesOf(samples, name))...)
		}
	}
	return all
}

// maxDepth limits the fields that are set in objects which do not have them.
const maxDepth = 4

// valuesOf returns the values of a field in each sample that has it.
func valuesOf(samples []any, name string) (all []any) {
	for _, s := range samples {
		if fields, ok := s.(map[string]any); ok && fields[name] != nil {
			all = append(all, fields[name])
		}
	}
	return all
}

// inputsOf returns the inputs of a field with a value, and those of the fields below. Samples are values of the field in other objects.
func inputsOf(s *apiextensionsv1.JSONSchemaProps, path []string, is any, samples []any) (all []input) {
	add := func(values ...any) {
		for _, v := range values {
			equal := func(i input) bool { return len(i.path) == len(path) && reflect.DeepEqual(i.value, v) }
			if !reflect.DeepEqual(v, is) && !slices.ContainsFunc(all, equal) {
				all = append(all, input{slices.Clone(path), v})
			}
		}
	}
	if s.Type != "object" || len(s.Properties) == 0 {
		defer func() { add(samples...) }()
	}
	switch {
	case s.XIntOrString, s.Type == "integer", s.Type == "number":
		add(numbersOf(s, is)...)
	case s.Type == "boolean":
		add(is != true)
	case s.Type == "string":
		add(textsOf(s)...)
	case s.Type == "array":
		list, _ := is.([]any)
		if len(list) > 0 && s.Items != nil && s.Items.Schema != nil {
			add([]any{}, list[:len(list)-1:len(list)-1])
			all = append(all, inputsOf(s.Items.Schema, append(slices.Clone(path), "0"), list[0], nil)...)
		}
	case s.Type == "object":
		fields, has := is.(map[string]any)
		if !has && len(path) >= maxDepth {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			all = append(all, inputsOf(&p, append(slices.Clone(path), name), fields[name], valuesOf(samples, name))...)
			if fields[name] != nil && !slices.Contains(s.Required, name) {
				all = append(all, input{append(slices.Clone(path), name), nil})
			}
		}
	}
	return all
}

// numbersOf returns the bounds of a number and its neighbours.
func numbersOf(s *apiextensionsv1.JSONSchemaProps, is any) (all []any) {
	candidates := []int64{0, 1, 10}
	if n, ok := is.(int64); ok {
		candidates = append(candidates, n-1, n+1)
	}
	for _, bound := range []*float64{s.Minimum, s.Maximum} {
		if bound != nil {
			candidates = append(candidates, int64(*bound))
		}
	}
	slices.Sort(candidates)
	for _, n := range slices.Compact(candidates) {
		if (s.Minimum == nil || float64(n) >= *s.Minimum) && (s.Maximum == nil || float64(n) <= *s.Maximum) {
			all = append(all, n)
		}
	}
	return all
}

// textsOf returns the values of an enum, or the empty and another text.
func textsOf(s *apiextensionsv1.JSONSchemaProps) (all []any) {
	for _, e := range s.Enum {
		var v string
		if json.Unmarshal(e.Raw, &v) == nil {
			all = append(all, v)
		}
	}
	if len(s.Enum) == 0 && s.Format == "" {
		all = append(all, "", "other")
	}
	return all
}

// schemaOf returns the schema of a custom resource and the name of its resource, or nil.
func (r *run) schemaOf(gvk schema.GroupVersionKind) (s *apiextensionsv1.JSONSchemaProps, resource string) {
	for id, u := range r.base.objects {
		if id.kind.Kind != "CustomResourceDefinition" {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd) != nil || crd.Spec.Group != gvk.Group || crd.Spec.Names.Kind != gvk.Kind {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Name == gvk.Version && v.Schema != nil {
				return v.Schema.OpenAPIV3Schema, crd.Name
			}
		}
	}
	return nil, ""
}

// samples returns those of World.Samples that have the kind of an object.
func (r *run) samples(of *object) (all []any) {
	for _, o := range r.world.Samples {
		if gvk, err := r.gvk(o); err != nil || gvk != of.GroupVersionKind() {
			continue
		}
		u, err := r.applied(o)
		if err != nil {
			r.fail(Scene, "a sample: %v", err)
		}
		all = append(all, u.Object)
	}
	return all
}

// note notes an applied object, with World.Inputs.
func (r *run) note(u *object) {
	if !r.world.Inputs {
		return
	}
	r.latest = u
	if s, _ := r.schemaOf(u.GroupVersionKind()); s != nil {
		r.custom = u
	}
}

// tryInput numbers the inputs of the custom resource that was applied last before this Settle. It applies the object with the
// input of the plan, and then the original. Between and afterwards the program settles.
func (r *run) tryInput() {
	original, f := r.custom, r.plan.input()
	if original == nil || r.expect != nil && f == nil {
		return
	}
	r.custom = nil // once
	s, resource := r.schemaOf(original.GroupVersionKind())
	before := len(r.inputs[resource])
	r.inputs[resource] = append(r.inputs[resource], inputs(s, original, r.samples(original))...)
	if f == nil || resource != f.Resource || f.At <= before || f.At > len(r.inputs[resource]) {
		return
	}
	r.begun[f] = true
	in := r.inputs[resource][f.At-1]
	other := original.DeepCopy()
	in.apply(other)
	r.tell("fault", fmt.Sprintf("the user applies %s %s", identityOf(other), in))
	err := r.apply(other)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		r.tell("server", "rejects it")
		return
	}
	if err != nil {
		r.fail(Scene, "applying %s %s: %v", identityOf(other), in, err)
	}
	r.rest(unknown)
	r.tell("fault", fmt.Sprintf("the user applies %s as before", identityOf(original)))
	if err := r.apply(original.DeepCopy()); err != nil {
		r.fail(Scene, "applying %s as before: %v", identityOf(original), err)
	}
	if r.rest(len(r.ends) - 1) {
		r.compare(len(r.ends)-1, r.end())
	}
}

// recreate deletes the last applied object. reapply applies it again. It reports whether it deleted one.
func (r *run) recreate() bool {
	if r.latest == nil || r.again != nil {
		return false
	}
	if is := r.state.objects[identityOf(r.latest)]; is == nil || is.GetDeletionTimestamp() != nil {
		return false
	}
	r.tell("fault", fmt.Sprintf("the user deletes %s", identityOf(r.latest)))
	if err := r.delete(r.latest); err != nil {
		r.fail(Scene, "deleting %s: %v", identityOf(r.latest), err)
	}
	r.again = r.latest
	return true
}

// reapply applies a deleted object again when it is gone. It reports whether it did.
func (r *run) reapply() bool {
	if r.again == nil || r.state.objects[identityOf(r.again)] != nil {
		return false
	}
	u := r.again
	r.again = nil
	r.tell("fault", fmt.Sprintf("the user applies %s again", identityOf(u)))
	if err := r.apply(u.DeepCopy()); err != nil {
		r.fail(Scene, "applying %s again: %v", identityOf(u), err)
	}
	return true
}
