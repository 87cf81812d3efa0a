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
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// An Operation is what a write does to an object.
type Operation string

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
	// Connect is no write: the client talks to what is behind an object.
	Connect Operation = "CONNECT"
)

// An Admission is a write that asks to be let in.
type Admission struct {
	Operation Operation
	Target    Target
	// Object is what is written, as the client sees it: through a subresource it may be
	// of another kind. For Connect it is the options of the client. It is nil for Delete.
	// A Mutator may change it or put another one in its place.
	Object object.Tree
	// Read is Object as it was read, with lists and maps that are empty, which are not stored. It is
	// nil if there are none. Only a Validator sees it.
	Read object.Tree
	// Changed is set by a Mutator that has changed Object. It is completed again then.
	Changed bool
	// Extended is set by a Mutator that has added to Object only what is complete, in the place
	// and form that it has when it is stored, so that nothing needs to be completed again.
	Extended bool
	// User asks for the write. What nobody asks for is asked for by request.Server.
	User *request.User
	// Guards are conditions on other keys under which the permission holds. They are
	// part of the commit.
	Guards []kv.Guard
	// Again says that the Mutators are asked a second time, because one of them wants those
	// before it to see what it has changed.
	Again bool

	reinvoke bool
	recalled map[any]any // by plugin
	endTurn  func(revision int64)

	options  WriteOptions
	deletion *metav1.DeleteOptions
	old      object.Tree
	oldest   func(context.Context) (object.Tree, error)
	annotate func(key, value string)
	// annotateRequest annotates what says as much as the request itself.
	annotateRequest func(key, value string)
}

// Old returns the object that is replaced or deleted, as the client sees it, and nil
// for Create. It is not to be changed. An object that can be deleted without being
// parsed is parsed here, when somebody asks.
func (a *Admission) Old(ctx context.Context) (object.Tree, error) {
	if a.old == nil && a.oldest != nil {
		var err error
		if a.old, err = a.oldest(ctx); err != nil {
			return nil, err
		}
	}
	return a.old, nil
}

// Reinvoke has all Mutators asked once more. It does nothing when they are asked again.
func (a *Admission) Reinvoke() { a.reinvoke = true }

// Recall returns what a plugin keeps of the write until the Mutators are asked again, which make
// makes when it is first asked for.
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

// Turn has a Resolver wait until its turn, by which writes that would only overtake each other are
// made one after the other. It is taken once for a write, and end is called when that has ended: with
// the revision at which it was made, or 0.
func (a *Admission) Turn(take func() (end func(revision int64), err error)) (err error) {
	if a.endTurn == nil {
		a.endTurn, err = take()
	}
	return err
}

// Is reports whether one of some operations is about a resource, or through a subresource, which
// is "" for the resource itself.
func (a *Admission) Is(of schema.GroupResource, subresource string, operations ...Operation) bool {
	return a.Target.Subresource == subresource && a.Target.Definition.GroupResource() == of && slices.Contains(operations, a.Operation)
}

// DryRun says that nothing will be stored, so that nothing else may be done either.
func (a *Admission) DryRun() bool { return a.options.DryRun }

// Warn tells the client something that is not an error.
func (a *Admission) Warn(message string) { a.options.warn(message) }

// Annotate adds to what the audit log says of the request.
func (a *Admission) Annotate(key, value string) {
	if a.annotate != nil {
		a.annotate(key, value)
	}
}

// Forbidden refuses the write for a reason. What is refused already stays as it is, and a store that
// does not answer is no reason to refuse.
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

// AnnotateRequest is Annotate for what is in the audit log only where requests are.
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

// A Validator sees an object as it will be stored, and may refuse it.
type Validator interface {
	Validate(ctx context.Context, a *Admission) error
}

// A Resolver decides on what is written and on other objects at once, such as a count that may
// not be exceeded. It is asked when all others have let the write in.
type Resolver interface {
	// Resolve returns the marks by which it has decided. It is asked again when one of them has
	// moved before the write was made.
	Resolve(ctx context.Context, a *Admission) ([]resource.Mark, error)
}

// Plugins are all who is asked about a write, in the order in which they are asked.
type Plugins struct {
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

// mutate asks the Mutators, and once more if one of them wants it.
func (p *Plugins) mutate(ctx context.Context, a *Admission) error {
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

// admissionOf is what admission is asked about a write.
func (w *write) admissionOf(ctx context.Context) *Admission {
	a := &Admission{Operation: Update, Target: w.target, Object: w.shown, options: w.options, old: w.shownOld}
	if w.current == nil {
		a.Operation = Create
		if a.Target.Name == "" {
			a.Target.Name = object.Name(a.Object)
		}
	}
	a.from(ctx)
	return a
}

// from takes what the context says of the request. Without one, it is the server who writes.
func (a *Admission) from(ctx context.Context) {
	a.User = request.Server
	if q := request.From(ctx); q != nil {
		a.User, a.annotate, a.annotateRequest = q.User, q.Annotate, q.AnnotateRequest
	}
}
