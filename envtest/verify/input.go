package verify

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	var in any = u.Object
	last := len(i.path) - 1
	for n, step := range i.path[:last] {
		switch at := in.(type) {
		case map[string]any:
			if at[step] == nil {
				at[step] = map[string]any{}
			}
			in = at[step]
		case []any:
			index, _ := strconv.Atoi(i.path[n])
			in = at[index]
		}
	}
	fields, ok := in.(map[string]any)
	switch {
	case ok && i.value == nil:
		delete(fields, i.path[last])
	case ok:
		fields[i.path[last]] = i.value
	default:
		if list, ok := in.([]any); ok {
			index, _ := strconv.Atoi(i.path[last])
			list[index] = i.value
		}
	}
}

// inputs returns other values for the fields of an object, as its schema allows. Status and metadata are no
// input of a user.
func inputs(s *apiextensionsv1.JSONSchemaProps, u *object) (all []input) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if name != "apiVersion" && name != "kind" && name != "metadata" && name != "status" {
			p := s.Properties[name]
			all = append(all, inputsOf(&p, []string{name}, u.Object[name])...)
		}
	}
	return all
}

// maxDepth limits the fields that are set in objects which do not have them.
const maxDepth = 4

// inputsOf returns the inputs of a field with a value, and those of the fields below.
func inputsOf(s *apiextensionsv1.JSONSchemaProps, path []string, is any) (all []input) {
	add := func(values ...any) {
		for _, v := range values {
			if !reflect.DeepEqual(v, is) {
				all = append(all, input{slices.Clone(path), v})
			}
		}
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
			all = append(all, inputsOf(s.Items.Schema, append(slices.Clone(path), "0"), list[0])...)
		}
	case s.Type == "object":
		fields, has := is.(map[string]any)
		if !has && len(path) >= maxDepth {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			all = append(all, inputsOf(&p, append(slices.Clone(path), name), fields[name])...)
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

// note notes an applied object, and its inputs, with World.Inputs.
func (r *run) note(u *object) {
	if !r.world.Inputs {
		return
	}
	r.latest = u
	if s, resource := r.schemaOf(u.GroupVersionKind()); s != nil {
		r.custom, r.inputs[resource] = u, inputs(s, u)
		r.customAs = resource
	}
}

// tryInput applies the object of the last Apply with another value of a field, and as it was. Between and
// afterwards the program settles.
func (s *Scenario) tryInput() {
	r := s.run
	f := r.plan.input()
	if f == nil || r.custom == nil || r.customAs != f.Resource || f.At > len(r.inputs[f.Resource]) || r.expect == nil {
		return
	}
	in, original := r.inputs[f.Resource][f.At-1], r.custom
	r.custom = nil // once
	changed := original.DeepCopy()
	in.apply(changed)
	r.tell("fault", fmt.Sprintf("the user applies %s %s", identityOf(changed), in))
	err := s.Client.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(changed), client.FieldOwner("user"), client.ForceOwnership)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		r.tell("server", "rejects it")
		return
	}
	if err != nil {
		r.fail(Scene, "applying %s %s: %v", identityOf(changed), in, err)
	}
	r.rest(unknown)
	r.tell("fault", fmt.Sprintf("the user applies %s as before", identityOf(original)))
	if err := s.Client.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(original.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership); err != nil {
		r.fail(Scene, "applying %s as before: %v", identityOf(original), err)
	}
	r.rest(len(r.ends) - 1)
	r.compare(len(r.ends) - 1)
}

// recreate deletes the last applied object. reapply applies it again.
func (r *run) recreate() {
	if r.latest == nil || r.again != nil {
		return
	}
	if is := r.state.objects[identityOf(r.latest)]; is == nil || is.GetDeletionTimestamp() != nil {
		return
	}
	r.tell("fault", fmt.Sprintf("the user deletes %s", identityOf(r.latest)))
	if err := r.admin.Delete(context.Background(), r.latest.DeepCopy(), client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
		r.fail(Scene, "deleting %s: %v", identityOf(r.latest), err)
	}
	r.again = r.latest
}

// reapply applies a deleted object again when it is gone. It reports whether it did.
func (r *run) reapply() bool {
	if r.again == nil || r.state.objects[identityOf(r.again)] != nil {
		return false
	}
	u := r.again
	r.again = nil
	r.tell("fault", fmt.Sprintf("the user applies %s again", identityOf(u)))
	if err := r.admin.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership); err != nil {
		r.fail(Scene, "applying %s again: %v", identityOf(u), err)
	}
	return true
}
