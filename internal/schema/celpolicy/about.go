package celpolicy

import (
	"context"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celprogram"
)

// About holds the values of the variables of expressions: a write and its context. Trees are read, not
// copied.
type About struct {
	Admission *registry.Admission
	// Kind is the kind of Object and Old, and Resource the resource whose rule matched: those of
	// the request, or an equivalent.
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// Object is the new object and Old the replaced one, each nil if there is none.
	Object, Old object.Tree
	// Namespace is the namespace that the object is in, nil if it is in none.
	Namespace *corev1.Namespace
	// Params are the parameters of a policy, nil for none.
	Params object.Tree
	// Authorizer answers what users may do, nil where expressions may not ask.
	Authorizer *Authorizer
	// Common is shared with other evaluations about the write in this form; nil for none.
	Common *Common
}

// A Common has values and buffers for evaluations about one write in one form. The evaluations must not run at the same time.
type Common struct {
	// request and namespace are the values of those variables, computed at their first use.
	request, namespace any
	conditions         *Common // of match conditions

	scopes []*celprogram.Scope // by the depth of the evaluation: variables are evaluated inside of others
	depth  int                 // scopes in use
}

// forConditions returns the Common of match conditions. Their values differ from those of rules.
func (c *Common) forConditions() *Common {
	if c == nil {
		return &Common{}
	}
	if c.conditions == nil {
		c.conditions = &Common{}
	}
	return c.conditions
}

// eval evaluates a program.
func (c *Common) eval(ctx context.Context, p *celprogram.Program, variables celprogram.Variables) (ref.Val, uint64, error) {
	if c.depth == len(c.scopes) {
		c.scopes = append(c.scopes, &celprogram.Scope{Meter: &celprogram.Meter{}})
	}
	s := c.scopes[c.depth]
	s.Meter.Context, s.Variables = ctx, variables
	c.depth++
	defer func() { c.depth-- }()
	return p.Eval(s)
}

// resolve finds a variable.
func (x *About) resolve(name string) (any, bool) {
	switch name {
	case "object":
		return value(x.Object), true
	case "oldObject":
		return value(x.Old), true
	case "params":
		return value(x.Params), true
	case "namespaceObject":
		if x.Common.namespace == nil {
			x.Common.namespace = value(namespaceTree(x.Namespace))
		}
		return x.Common.namespace, true
	case "request":
		if x.Common.request == nil {
			x.Common.request = value(x.requestTree())
		}
		return x.Common.request, true
	case "authorizer":
		if x.Authorizer != nil {
			return x.Authorizer.value, true
		}
	case "authorizer.requestResource":
		if x.Authorizer != nil {
			return x.Authorizer.requested, true
		}
	}
	return nil, false
}

// value presents a tree to expressions. The interpreter selects from maps and lists as they are.
func value(t object.Tree) any {
	if t == nil {
		return types.NullValue
	}
	return t
}

// requestTree returns the request in the form of an AdmissionReview, without the objects.
func (x *About) requestTree() object.Tree {
	a := x.Admission
	t := object.Tree{
		"uid":             "",
		"kind":            kindTree(x.Kind),
		"resource":        resourceTree(x.Resource),
		"requestKind":     kindTree(RequestKind(a)),
		"requestResource": resourceTree(RequestResource(a)),
		"operation":       string(a.Operation),
		"userInfo":        userTree(a),
		"object":          nil,
		"oldObject":       nil,
		"dryRun":          a.DryRun(),
		"options":         optionsTree(a.Options()),
	}
	given := func(field, text string) {
		if text != "" {
			t[field] = text
		}
	}
	given("subResource", a.Target.Subresource)
	given("requestSubResource", a.Target.Subresource)
	given("name", RequestName(a))
	given("namespace", RequestNamespace(a))
	return t
}

// RequestKind is the kind that the client reads and writes, or the options of a connection.
func RequestKind(a *registry.Admission) schema.GroupVersionKind {
	if s := a.Target.Version.Subresource(a.Target.Subresource); s != nil && !s.Kind.Empty() {
		return s.Kind
	}
	return a.Target.Definition.GroupVersionKind(a.Target.Version.Name)
}

// RequestResource returns the resource of the request.
func RequestResource(a *registry.Admission) schema.GroupVersionResource {
	d := a.Target.Definition
	return schema.GroupVersionResource{Group: d.Group, Version: a.Target.Version.Name, Resource: d.Plural}
}

// RequestName is the name of the object, empty while it has none, and for all objects of a
// collection.
func RequestName(a *registry.Admission) string {
	if a.Target.Name == "" && a.Object != nil {
		return object.Name(a.Object)
	}
	return a.Target.Name
}

// RequestNamespace is the namespace of the object. A namespace is in itself.
func RequestNamespace(a *registry.Admission) string {
	if a.Target.Definition.GroupResource() == corev1.Resource("namespaces") {
		return RequestName(a)
	}
	return a.Target.Namespace
}

// namespaceTree returns the fields of a namespace that expressions see.
func namespaceTree(n *corev1.Namespace) object.Tree {
	if n == nil {
		return nil
	}
	shown := *n
	shown.TypeMeta = metav1.TypeMeta{}
	shown.OwnerReferences, shown.ManagedFields = nil, nil
	//lint:ignore SA1019 old objects have it
	shown.SelfLink = ""
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&shown)
	if err != nil {
		return nil
	}
	return t
}

func kindTree(k schema.GroupVersionKind) object.Tree {
	return object.Tree{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func resourceTree(r schema.GroupVersionResource) object.Tree {
	return object.Tree{"group": r.Group, "version": r.Version, "resource": r.Resource}
}

func userTree(a *registry.Admission) object.Tree {
	t := object.Tree{}
	if a.User == nil {
		return t
	}
	if a.User.Name != "" {
		t["username"] = a.User.Name
	}
	if a.User.UID != "" {
		t["uid"] = a.User.UID
	}
	if len(a.User.Groups) > 0 {
		t["groups"] = anyList(a.User.Groups)
	}
	if len(a.User.Extra) > 0 {
		extra := object.Tree{}
		for key, values := range a.User.Extra {
			extra[key] = anyList(values)
		}
		t["extra"] = extra
	}
	return t
}

func anyList(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

// optionsTree is nil for no options.
func optionsTree(o runtime.Object) any {
	if o == nil {
		return nil
	}
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	return t
}
