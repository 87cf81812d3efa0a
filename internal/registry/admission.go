package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// Operation is the operation that admission decides on.
type Operation string

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
	// Connect writes nothing: the client connects to the backend of an object.
	Connect Operation = "CONNECT"
)

// An Admission is a request for a write, as plugins see it.
type Admission struct {
	Operation Operation
	Target    Target
	// Object is the object to write, as the client sees it: through a subresource it may be of another
	// kind. For Connect it is the options of the client. It is nil for Delete. A Mutator may change or
	// replace it.
	Object object.Tree
	// Read is Object as it was decoded, with empty lists and maps that are not stored. It is nil if
	// there are none. Only a Validator sees it.
	Read object.Tree
	// A Mutator sets Changed when it has changed Object, which then is completed again.
	Changed bool
	// A Mutator sets Extended when it has only added fields to Object, complete and in their stored
	// form, so that Object needs no second completion.
	Extended bool
	// Gates are the feature gates of the server.
	Gates *gate.Set
	// User is the user who requests the write: request.Server for writes of the server itself.
	User *request.User
	// Guards are conditions on other keys under which the permission holds. They are
	// part of the commit.
	Guards []kv.Guard
	// Again is true on the second call of a Mutator. A later Mutator has asked for it, so that the
	// earlier ones see its changes.
	Again bool

	reinvoke bool
	recalled map[any]any // by plugin
	endTurn  func(revision int64)

	options  WriteOptions
	deletion *metav1.DeleteOptions
	old      object.Tree
	oldest   func(context.Context) (object.Tree, error)
	annotate func(key, value string)
	// annotateRequest adds an annotation to audit events of level Request and above.
	annotateRequest func(key, value string)
}

// Old returns the object to replace or delete, as the client sees it, and nil for Create. The caller
// must not change it. An object whose deletion needs no parsing is parsed by the first call.
func (a *Admission) Old(ctx context.Context) (object.Tree, error) {
	if a.old == nil && a.oldest != nil {
		var err error
		if a.old, err = a.oldest(ctx); err != nil {
			return nil, err
		}
	}
	return a.old, nil
}

// AddFinalizer adds a finalizer to Object, if it is missing.
func (a *Admission) AddFinalizer(name string) {
	if has := object.Finalizers(a.Object); !slices.Contains(has, name) {
		object.SetFinalizers(a.Object, append(has, name))
		a.Extended = true
	}
}

// Reinvoke requests a second call of all Mutators. During that second call it does nothing.
func (a *Admission) Reinvoke() { a.reinvoke = true }

// Recall returns the state of a plugin for this write and calls make at the first use. The second call
// of the Mutators sees the same state.
func (a *Admission) Recall(plugin any, make func() any) any {
	kept, ok := a.recalled[plugin]
	if !ok {
		kept = make()
		if a.recalled == nil {
			a.recalled = map[any]any{}
		}
		a.recalled[plugin] = kept
	}
	return kept
}

// Turn lets a Resolver wait for its turn: writes that would only conflict with each other go one after
// the other. A write takes one turn. end is called at the end of the write, with its revision, or 0 if
// nothing was written.
func (a *Admission) Turn(take func() (end func(revision int64), err error)) (err error) {
	if a.endTurn == nil {
		a.endTurn, err = take()
	}
	return err
}

// Is reports whether the operation is one of operations, for a resource and a subresource, which is ""
// for the resource itself.
func (a *Admission) Is(of schema.GroupResource, subresource string, operations ...Operation) bool {
	return a.Target.Subresource == subresource && a.Target.Definition.GroupResource() == of && slices.Contains(operations, a.Operation)
}

// DryRun reports whether the request is a dry run. Plugins must then have no side effects.
func (a *Admission) DryRun() bool { return a.options.DryRun }

// Warn adds a warning to the response.
func (a *Admission) Warn(message string) { a.options.warn(message) }

// Annotate adds an annotation to the audit event of the request.
func (a *Admission) Annotate(key, value string) {
	if a.annotate != nil {
		a.annotate(key, value)
	}
}

// Forbidden rejects the write with 403. It keeps an error that is a 403 already. An unavailable store
// is not a rejection.
func (a *Admission) Forbidden(err error) error {
	if errors.Is(err, kv.ErrUnavailable) {
		return StorageError(err)
	}
	if status.Is(err, metav1.StatusReasonForbidden) {
		return err
	}
	name := a.Target.Name
	if name == "" {
		name = cmp.Or(object.Name(a.Object), object.MetaString(a.Object, "generateName"), "Unknown")
	}
	return status.Forbidden(a.Target.Definition.GroupResource(), name, err)
}

// AnnotateRequest is Annotate for audit events of level Request and above.
func (a *Admission) AnnotateRequest(key, value string) {
	if a.annotateRequest != nil {
		a.annotateRequest(key, value)
	}
}

// Options returns the options of the operation: CreateOptions, UpdateOptions or
// DeleteOptions, and nil for Connect.
func (a *Admission) Options() runtime.Object {
	var dryRun []string
	if a.options.DryRun {
		dryRun = []string{metav1.DryRunAll}
	}
	o := a.options
	switch a.Operation {
	case Create:
		return &metav1.CreateOptions{TypeMeta: optionsKind("CreateOptions"), DryRun: dryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
	case Update:
		return &metav1.UpdateOptions{TypeMeta: optionsKind("UpdateOptions"), DryRun: dryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
	case Connect:
		return nil
	default:
		d := &metav1.DeleteOptions{}
		if a.deletion != nil {
			d = a.deletion.DeepCopy()
		}
		d.TypeMeta = optionsKind("DeleteOptions")
		return d
	}
}

func optionsKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: kind}
}

// A Mutator may change an object before it is prepared and validated.
type Mutator interface {
	Mutate(ctx context.Context, a *Admission) error
}

// A Validator sees an object as it will be stored, and may reject it.
type Validator interface {
	Validate(ctx context.Context, a *Admission) error
}

// A Resolver checks a write together with other objects, for example against a quota. It is called
// after all other plugins have admitted the write.
type Resolver interface {
	// Resolve returns the marks on which the decision depends. It is called again if one of them has
	// moved before the commit.
	Resolve(ctx context.Context, a *Admission) ([]resource.Mark, error)
}

// Plugins are the admission plugins, in the order of their calls.
type Plugins struct {
	// Guard is called before all others, and also for the deletion of a corrupt object, about which no plugin could
	// decide; nil for none.
	Guard      Mutator
	Mutators   []Mutator
	Validators []Validator
	Resolvers  []Resolver
}

// Add adds a plugin, which is a Mutator, a Validator, a Resolver, or several of them.
func (p *Plugins) Add(plugin any) {
	if m, ok := plugin.(Mutator); ok {
		p.Mutators = append(p.Mutators, m)
	}
	if v, ok := plugin.(Validator); ok {
		p.Validators = append(p.Validators, v)
	}
	if r, ok := plugin.(Resolver); ok {
		p.Resolvers = append(p.Resolvers, r)
	}
}

// mutate calls the Mutators, and a second time if one of them requests it.
func (p *Plugins) mutate(ctx context.Context, a *Admission) error {
	if err := p.guard(ctx, a); err != nil {
		return err
	}
	for {
		for _, m := range p.Mutators {
			if err := m.Mutate(ctx, a); err != nil {
				return err
			}
		}
		if a.Again || !a.reinvoke {
			return nil
		}
		a.Again = true
	}
}

func (p *Plugins) guard(ctx context.Context, a *Admission) error {
	if p.Guard == nil {
		return nil
	}
	return p.Guard.Mutate(ctx, a)
}

func (p *Plugins) validate(ctx context.Context, a *Admission) error {
	for _, v := range p.Validators {
		if err := v.Validate(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plugins) resolve(ctx context.Context, a *Admission) (marks []resource.Mark, err error) {
	for _, r := range p.Resolvers {
		more, err := r.Resolve(ctx, a)
		if err != nil {
			return nil, err
		}
		marks = append(marks, more...)
	}
	return marks, nil
}

// admissionOf returns the Admission of a write.
func (w *write) admissionOf(ctx context.Context) *Admission {
	a := &Admission{Operation: Update, Target: w.target, Object: w.shown, Gates: w.gates, options: w.options, old: w.shownOld}
	if w.current == nil {
		a.Operation = Create
		if a.Target.Name == "" {
			a.Target.Name = object.Name(a.Object)
		}
	}
	a.from(ctx)
	return a
}

// from copies user and audit functions from the request in the context. Without a request the server
// is the user.
func (a *Admission) from(ctx context.Context) {
	a.User = request.Server
	if q := request.From(ctx); q != nil {
		a.User, a.annotate, a.annotateRequest = q.User, q.Annotate, q.AnnotateRequest
	}
}
