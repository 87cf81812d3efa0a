package registry_test

import (
	"context"
	"slices"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

type mutator func(*registry.Admission)

func (m mutator) Mutate(_ context.Context, a *registry.Admission) error { m(a); return nil }

// A Mutator that requests it causes a second call of all Mutators, and no third one.
func TestMutatorsAreAskedAgain(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	var again []bool
	r := registry.New(backend, caching(t, backend), registry.Options{Plugins: registry.Plugins{Mutators: []registry.Mutator{
		mutator(func(a *registry.Admission) { again = append(again, a.Again) }),
		mutator(func(a *registry.Admission) { a.Reinvoke() }),
	}}})
	create(t, r, "a")
	if !slices.Equal(again, []bool{false, true}) {
		t.Errorf("asked %v", again)
	}
}

// Plugins, and the policies and webhooks behind them, see the user of a write. Writes of controllers
// have the server as their user.
func TestPluginsAreToldWhoWrites(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	var user *request.User
	r := registry.New(backend, caching(t, backend), registry.Options{Plugins: registry.Plugins{Mutators: []registry.Mutator{
		mutator(func(a *registry.Admission) { user = a.User }),
	}}})
	create(t, r, "a")
	if user == nil || user.Name != "system:apiserver" || !user.In(request.Masters) {
		t.Errorf("without a request it is %v who writes", user)
	}
	jane := &request.User{Name: "jane"}
	ctx := request.With(t.Context(), &request.Request{User: jane})
	new := object.Tree{"apiVersion": "example.com/v1", "kind": "Item", "metadata": object.Tree{"name": "b"}}
	if _, err := r.Create(ctx, registry.StorageTarget(resource.New(*items(true)), "", "b"), registry.Given(new), registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if user != jane {
		t.Errorf("in a request of jane it is %v who writes", user)
	}
}

// If a generated name is taken meanwhile, another one is generated. Mutating plugins see the object
// without a name, once; validating plugins see each name.
func TestGeneratedNameIsTaken(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	var r *registry.Registry
	var mutated, validated []string
	r = registry.New(backend, caching(t, backend), registry.Options{Plugins: registry.Plugins{
		Mutators: []registry.Mutator{mutator(func(a *registry.Admission) { mutated = append(mutated, a.Target.Name) })},
		Validators: []registry.Validator{validator(func(a *registry.Admission) {
			if validated = append(validated, a.Target.Name); len(validated) == 1 {
				create(t, r, a.Target.Name)
			}
		})},
	}})
	new := object.Tree{"apiVersion": "example.com/v1", "kind": "Item", "metadata": object.Tree{"generateName": "a-", "labels": object.Tree{"b": "c"}}}
	made, err := r.Create(t.Context(), registry.StorageTarget(resource.New(*items(true)), "", ""), registry.Given(new), registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, name := mutated[len(mutated)-1], object.Name(made.Tree) // the other one has the name
	if !slices.Equal(mutated, []string{"", first}) || !slices.Equal(validated, []string{first, first, name}) || name == first {
		t.Errorf("%s was made; asked to change %q, to refuse %q", name, mutated, validated)
	}
}

// counter admits a limited number of objects, by a count stored beside them.
type counter struct {
	backend kv.Backend
	key     string
	asked   int
}

func (c *counter) Resolve(ctx context.Context, _ *registry.Admission) ([]resource.Mark, error) {
	c.asked++
	m := resource.Mark{Key: c.key, Moves: true, Value: []byte{'1'}}
	switch found, err := c.backend.Get(ctx, c.key, kv.Latest); err {
	case nil:
		m.Revision, m.Value = found.Revision, append(found.Value, '1')
	case kv.ErrNotFound:
	default:
		return nil, err
	}
	if c.asked == 1 { // another write increments the count meanwhile
		if _, err := c.backend.Commit(ctx, kv.Write{Key: c.key, Value: []byte{'1'}}); err != nil {
			return nil, err
		}
	}
	return []resource.Mark{m}, nil
}

// The objects that a Resolver reads are guards of the write. It is called again if one has changed.
func TestResolversAreAskedAgain(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	c := &counter{backend: backend, key: "/registry/.anykind/count"}
	r := registry.New(backend, caching(t, backend), registry.Options{Plugins: registry.Plugins{Resolvers: []registry.Resolver{c}}})
	create(t, r, "a")
	found, err := backend.Get(t.Context(), c.key, kv.Latest)
	if err != nil || string(found.Value) != "11" {
		t.Errorf("counted %q (%v), want both", found.Value, err)
	}
	if c.asked != 2 {
		t.Errorf("asked %d times", c.asked)
	}
}

func create(t *testing.T, r *registry.Registry, name string) {
	t.Helper()
	new := object.Tree{"apiVersion": "example.com/v1", "kind": "Item", "metadata": object.Tree{"name": name}}
	target := registry.StorageTarget(resource.New(*items(true)), "", name)
	if _, err := r.Create(t.Context(), target, registry.Given(new), registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}
