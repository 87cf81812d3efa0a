package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/envtest"
)

// A World is what a program runs in.
type World struct {
	// Start runs the program until the context ends. It is called again after each crash, so it must not
	// depend on variables that an earlier call has set. The program must not listen on sockets.
	Start func(ctx context.Context, config *rest.Config) error

	// Command is a program in a process of its own, with its arguments, instead of Start. The environment variable
	// KUBECONFIG names its server. Time is real then, and faults are shorter: see [ExploreCommand].
	Command []string

	// Output receives stdout and stderr of Command. Nil discards them.
	Output io.Writer

	// Progress is called after each run.
	Progress func(Outcome)

	// CRDs and CRDDirectoryPaths are the CustomResourceDefinitions of the server.
	CRDs              []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths []string

	// Objects are applied before the scenario.
	Objects []client.Object

	// Controllers are those of kube-controller-manager that run in the server. Nil is the garbage
	// collector and the one that empties namespaces.
	Controllers []string

	// Kubelet makes a kubelet run all Pods: it makes them ready, completes those that are not to be
	// restarted, and removes deleted ones. No container is started.
	Kubelet bool

	// WithoutWatchList makes the server reject watches that begin with a list, as kube-apiserver before
	// v1.34 does. Clients then list with resourceVersion=0. After a restart, such a list can be older than what
	// the program has seen: StaleRestart.
	WithoutWatchList bool

	// Others are programs that no fault affects, such as the controllers of other kinds. They run from the
	// beginning to the end of a run, and must meet the requirements of Start.
	Others []func(ctx context.Context, config *rest.Config) error

	// Inputs makes plans of a user, too. After a Settle, the user applies the last custom resource with another value
	// of one field that its schema has, waits, and applies it as before. Before a write of the program, the
	// user deletes the last applied object, and applies it again. The state must then be the one
	// without these changes. Leave it off if their traces are right. After RemoveFinalizers, the program must
	// also set the finalizer of a living object again.
	Inputs bool

	// Samples are objects whose values Inputs also tries, such as the manifests from which "anykind crd infer" made the schema. Only
	// those of the kind of an applied object count.
	Samples []client.Object

	// Lasting are the kinds of which no object may be replaced by a new one with its name when the program restarts
	// with an old cache: Rewind. Nil is PersistentVolumeClaim, and "*" is every kind.
	Lasting []string

	// Scheme has the types of the objects that the scenario uses. Nil is that of client-go.
	Scheme *runtime.Scheme

	// User is the user that the program runs as. The zero value is an administrator.
	User envtest.User

	// Quiet is the time without a change after which the program has come to rest. It must be longer than
	// each pause between two steps of the program. Zero is 10 seconds, and 2 for Command.
	Quiet time.Duration

	// Faults are the kinds of faults to inject. Nil is all.
	Faults []FaultKind

	// Ignore names fields that may differ at the end, such as "Widget.status.retries".
	Ignore []string

	// Seed selects the order of the plans. Equal seeds give equal runs.
	Seed uint64

	// Plans limits the number of runs, and Time their total time. Zero is 500, and 30 seconds, or 10 minutes for
	// Command.
	Plans int
	Time  time.Duration

	// Findings is the number of distinct problems after which no more plans are run. Zero is 3.
	Findings int

	// Plan is the text of the only plan to run. The environment variable VERIFY_PLAN replaces it.
	Plan string
}

func (w *World) scheme() *runtime.Scheme {
	if w.Scheme == nil {
		return scheme.Scheme
	}
	return w.Scheme
}

func (w *World) controllers() []string {
	if w.Controllers == nil {
		return []string{"garbage-collector-controller", "namespace-controller"}
	}
	return w.Controllers
}

func (w *World) user() envtest.User {
	if w.User.Name == "" {
		return envtest.User{Name: "program", Groups: []string{"system:masters"}}
	}
	return w.User
}

// lasts reports whether a kind is one of Lasting.
func (w *World) lasts(kind string) bool {
	if w.Lasting == nil {
		return kind == "PersistentVolumeClaim"
	}
	return slices.Contains(w.Lasting, kind) || slices.Contains(w.Lasting, "*")
}

func (w *World) ignored() map[string]bool {
	all := map[string]bool{}
	for _, field := range w.Ignore {
		all[field] = true
	}
	return all
}

func (w *World) findings() int { return orDefault(w.Findings, 3) }
func (w *World) plans() int    { return orDefault(w.Plans, 500) }

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// A Scenario is one run, as its function sees it. Its methods act as users do: they are subject to no
// faults. A failed one ends the run. The embedded Client has the rights of an administrator; its changes
// reach the program at the next Settle.
type Scenario struct {
	client.Client
	run     *run
	finally []check
}

// A check is a named condition of a State.
type check struct {
	name  string
	holds func(*State) error
}

// Apply applies objects, as "kubectl apply --server-side --force-conflicts" does. The arguments do not change.
func (s *Scenario) Apply(objects ...client.Object) {
	for _, o := range objects {
		u, err := s.run.applied(o)
		if err == nil {
			s.run.tell("user", fmt.Sprintf("applies %s", identityOf(u)))
			s.run.touch(identityOf(u))
			s.run.note(u.DeepCopy())
			s.run.deleted = identity{}
			err = s.run.apply(u)
		}
		if err != nil {
			s.run.fail(Scene, "applying %s %s: %v%s", typeOf(o), client.ObjectKeyFromObject(o), err, advice(err))
		}
	}
}

// typeOf returns the kind of an object, or its Go type.
func typeOf(o client.Object) string {
	return orDefault(o.GetObjectKind().GroupVersionKind().Kind, fmt.Sprintf("%T", o))
}

// advice returns the way out for the mistakes of a first scenario.
func advice(err error) string {
	var failed *apiutil.ErrResourceDiscoveryFailed
	switch {
	case runtime.IsNotRegisteredError(err):
		return ": add the type to World.Scheme"
	case meta.IsNoMatchError(err), errors.As(err, &failed):
		return ": add the definition to World.CRDs or World.CRDDirectoryPaths, or by --crds"
	}
	return ""
}

// Delete deletes objects that exist. Dependents are deleted in the background.
func (s *Scenario) Delete(objects ...client.Object) {
	for _, o := range objects {
		gvk, err := s.run.gvk(o)
		if err == nil {
			o, err = s.run.placed(o)
		}
		if err == nil {
			s.run.deleted = identity{gvk.GroupKind(), o.GetNamespace(), o.GetName()}
			if c := s.run.custom; c != nil && identityOf(c) == s.run.deleted {
				s.run.custom = nil
			}
			s.run.tell("user", fmt.Sprintf("deletes %s", s.run.deleted))
			err = s.run.delete(o)
		}
		if again := s.run.again; again != nil && identityOf(again) == s.run.deleted {
			s.run.again = nil
		}
		if err != nil {
			s.run.fail(Scene, "deleting %s %s: %v%s", typeOf(o), client.ObjectKeyFromObject(o), err, advice(err))
		}
	}
}

// Do runs a step of a user, such as a change by Client.
func (s *Scenario) Do(name string, step func(ctx context.Context) error) {
	s.run.tell("user", name)
	if err := step(context.Background()); err != nil {
		s.run.fail(Scene, "%s: %v", name, err)
	}
}

// Settle lets the program run, and time pass, until nothing changes any more. The state must then be equal
// to that of a run without faults.
func (s *Scenario) Settle() {
	s.run.settle()
	s.run.tryInput()
}

// Always checks a condition in each state of the server from now on.
func (s *Scenario) Always(name string, holds func(*State) error) {
	s.run.always = append(s.run.always, check{name, holds})
}

// Finally checks a condition in the last state.
func (s *Scenario) Finally(name string, holds func(*State) error) {
	s.finally = append(s.finally, check{name, holds})
}
