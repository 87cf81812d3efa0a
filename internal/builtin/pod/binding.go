package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// bindingKind is the kind Binding, the body of the subresource binding of pods. It is also a
// resource, from before there were subresources.
func bindingKind(b *binder) *resource.Definition {
	return kind.New(resource.Definition{
		Plural: "bindings", Singular: "binding", Kind: "Binding", Namespaced: true,
		Verbs: []string{"create"},
	}, kind.UnlistedOf[*corev1.Binding](&resource.Version{Name: "v1", Creater: b}))
}

var podResource = schema.GroupResource{Resource: "pods"}

// A binder binds pods to nodes.
type binder struct{ pods *resource.Definition }

// Create binds the pod of a Binding. Of several concurrent bindings of a pod one succeeds: the
// write needs the pod as it was read.
func (b *binder) Create(ctx context.Context, c *resource.Change) (map[string]any, error) {
	binding := c.Object
	name := object.Name(binding)
	if c.Subresource != "" && c.Name != name {
		return nil, status.BadRequest("name in URL does not match name in Binding object")
	}
	if errs := validateBinding(binding); len(errs) > 0 {
		return nil, errors.New(status.Join(errs)) // a 500, as in Kubernetes
	}
	if name == "" {
		return nil, status.BadRequest("Name parameter required.")
	}
	for {
		pod, err := c.Objects.Get(ctx, b.pods, c.Namespace, name)
		if err != nil {
			return nil, err
		}
		if err := b.bind(c.Gates, pod, binding); err != nil {
			return nil, err
		}
		if c.DryRun {
			return nil, nil
		}
		_, err = c.Objects.Replace(ctx, resource.Object{Definition: b.pods, Tree: pod})
		if !errors.Is(err, resource.ErrOvertaken) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func validateBinding(binding map[string]any) (errs field.ErrorList) {
	at := field.NewPath("target")
	of, name := kind.Text(binding, "target", "kind"), kind.Text(binding, "target", "name")
	if of != "" && of != "Node" {
		errs = append(errs, field.NotSupported(at.Child("kind"), of, []string{"Node", "<empty>"}))
	}
	switch {
	case name == "":
		errs = append(errs, field.Required(at.Child("name"), ""))
	case of == "" || of == "Node":
		errs = append(errs, kind.Invalids(at.Child("name"), name, apivalidation.NameIsDNSSubdomain(name, false))...)
	}
	return errs
}

// bind sets the node of a pod, if the binding applies to it and it is not bound.
func (b *binder) bind(gates *gate.Set, pod, binding map[string]any) error {
	if err := b.isMeant(pod, binding); err != nil {
		return err
	}
	name, node := object.Name(pod), kind.Text(pod, "spec", "nodeName")
	refuse := func(format string, args ...any) error {
		return status.Conflict(schema.GroupResource{Resource: "pods/binding"}, name, fmt.Errorf(format, args...))
	}
	switch {
	case object.Deleting(pod):
		return refuse("pod %s is being deleted, cannot be assigned to a host", name)
	case node != "":
		return refuse("pod %v is already assigned to node %q", name, node)
	case len(kind.List(pod, "spec", "schedulingGates")) > 0:
		return refuse("pod %v has non-empty .spec.schedulingGates", name)
	}
	kind.Child(pod, "spec")["nodeName"] = kind.Text(binding, "target", "name")
	if gates.On(gate.ClearingNominatedNodeNameAfterBinding) {
		delete(kind.Child(pod, "status"), "nominatedNodeName")
	}
	copied := []string{"annotations"}
	if gates.On(gate.PodTopologyLabelsAdmission) {
		copied = append(copied, "labels")
	}
	for _, field := range copied {
		for key, value := range kind.Tree(binding, "metadata", field) {
			kind.Child(object.Metadata(pod), field)[key] = value
		}
	}
	maps.DeleteFunc(kind.Tree(pod, "metadata", "annotations"), func(key string, _ any) bool { return initContainers[key] })
	setCondition(pod, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	return nil
}

// isMeant checks that the pod has the UID and resourceVersion in the binding.
func (b *binder) isMeant(pod, binding map[string]any) error {
	for _, of := range []struct{ name, asked, is string }{
		{"UID", object.UID(binding), object.UID(pod)},
		{"ResourceVersion", object.ResourceVersion(binding), object.ResourceVersion(pod)},
	} {
		if of.asked != "" && of.asked != of.is {
			return status.Conflict(podResource, object.Name(pod),
				fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: %s in precondition: %s, %s in object meta: %s",
					b.pods.Key(object.Namespace(pod), object.Name(pod)), of.name, of.asked, of.name, of.is))
		}
	}
	return nil
}

// initContainers are the annotations for init containers from before the field. They are no longer
// accepted.
var initContainers = map[string]bool{
	"pod.beta.kubernetes.io/init-containers": true, "pod.beta.kubernetes.io/init-container-statuses": true,
	"pod.alpha.kubernetes.io/init-containers": true, "pod.alpha.kubernetes.io/init-container-statuses": true,
}
