package crd_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

// Tests of several servers over one store.

// cogs is a CustomResourceDefinition of a group.
func cogs(group, plural, kind string, shortNames ...string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {plural: %[1]s, kind: %[3]s, shortNames: [%[4]s]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, plural, group, kind, strings.Join(shortNames, ", "))
}

func accepted(c *v1.CustomResourceDefinition) bool {
	return strings.Contains(summary(c), "NamesAccepted=True")
}

// Of two concurrent definitions at two servers with the same name, exactly one gets it. The other one
// gets it when it is free again.
func TestNamesAreGivenOnceByTwoServers(t *testing.T) {
	store := memkv.New(memkv.Options{})
	t.Cleanup(func() { store.Close() })
	servers := []*server{startOver(t, store), startOver(t, store)}
	for round := range 50 {
		group := fmt.Sprintf("g%d.example.com", round)
		var made [2]object.Tree
		var all sync.WaitGroup
		for i, s := range servers {
			all.Go(func() {
				var err error
				if made[i], err = s.try(s.crds(""), cogs(group, fmt.Sprintf("cogs%d", i), "Cog")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		winner := 0
		if accepted(typed(t, made[1])) {
			winner = 1
		}
		won, lost := fmt.Sprintf("cogs%d.%s", winner, group), fmt.Sprintf("cogs%d.%s", 1-winner, group)
		for _, s := range servers {
			if !accepted(s.stored(won)) || accepted(s.stored(lost)) {
				t.Fatalf("round %d:\n%s is %s\n%s is %s", round, won, summary(s.stored(won)), lost, summary(s.stored(lost)))
			}
		}
		servers[round%2].delete(servers[round%2].crds(won))
		for _, s := range servers {
			s.eventually(lost, "has the name that is free now", accepted)
			s.eventually(won, "is gone", gone)
		}
		servers[round%2].delete(servers[round%2].crds(lost))
		for _, s := range servers {
			s.eventually(lost, "is gone", gone)
		}
	}
	page, err := store.List(t.Context(), kv.Range{})
	if err != nil || len(page.Records) > 0 {
		t.Errorf("when all definitions are gone, these are left: %v, %v", page.Records, err)
	}
}

// slow is a server that delays the write of one definition, so that its decision is based on outdated
// data.
func slow(t *testing.T, store kv.Backend, name string) (s *server, arrived <-chan struct{}, proceed func()) {
	reached, may := make(chan struct{}), make(chan struct{})
	var once sync.Once
	return startOver(t, kvtest.NewFaulty(store, func(c kvtest.Call) kvtest.Fault {
		if c.Operation == kvtest.Commit && c.Key == crd.Prefix+name {
			once.Do(func() { close(reached); <-may })
		}
		return kvtest.Fault{}
	})), reached, sync.OnceFunc(func() { close(may) })
}

// A kube-apiserver on the same store does not use marks. A name that it frees during the rejection of
// another definition is still given to that one.
func TestANameThatIsFreedByOthersIsGiven(t *testing.T) {
	store := memkv.New(memkv.Options{})
	t.Cleanup(func() { store.Close() })
	held, arrived, proceed := slow(t, store, "slows.example.com")
	t.Cleanup(proceed)
	held.define(cogs("example.com", "cogs", "Cog"))
	done := make(chan error, 1)
	go func() { _, err := held.try(held.crds(""), cogs("example.com", "slows", "Cog")); done <- err }()
	<-arrived
	record, err := store.Get(t.Context(), crd.Prefix+"cogs.example.com", kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), kv.Write{Key: record.Key, Expect: record.Revision}); err != nil {
		t.Fatal(err)
	}
	held.eventually("cogs.example.com", "gone", gone)
	proceed()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	held.eventually("slows.example.com", "has the name that is free now", accepted)
}

// With any writes between the decision and the commit of a server, no name is given twice, and no free
// name is rejected.
func TestAServerThatWasHeldUpGoesByWhatIsTrueThen(t *testing.T) {
	const group = "example.com"
	for _, test := range []struct {
		name      string
		before    []string // definitions
		slow      func(s *server) error
		meanwhile func(t *testing.T, s *server)
		want      string // of the definition that is written slowly
	}{
		{
			name:      "a name that it takes is taken",
			slow:      func(s *server) error { _, err := s.try(s.crds(""), cogs(group, "slows", "Cog")); return err },
			meanwhile: func(_ *testing.T, s *server) { s.define(cogs(group, "cogs", "Cog")) },
			want: `slows    []
NamesAccepted=False ListKindConflict: "CogList" is already in use
Established=False NotAccepted: not all names are accepted`,
		},
		{
			name:   "a name that it refuses becomes free",
			before: []string{cogs(group, "cogs", "Cog")},
			slow:   func(s *server) error { _, err := s.try(s.crds(""), cogs(group, "slows", "Cog")); return err },
			meanwhile: func(_ *testing.T, s *server) {
				s.delete(s.crds("cogs." + group))
				s.eventually("cogs."+group, "gone", gone)
			},
			want: `slows cog Cog CogList []
NamesAccepted=True NoConflicts: no conflicts found
Established=True InitialNamesAccepted: the initial names have been accepted`,
		},
		{
			name:   "a name that it changes to is taken",
			before: []string{cogs(group, "slows", "Slow")},
			slow: func(s *server) error {
				_, err := s.change("slows."+group, "", func(c *v1.CustomResourceDefinition) { c.Spec.Names.ShortNames = []string{"cg"} })
				return err
			},
			meanwhile: func(_ *testing.T, s *server) { s.define(cogs(group, "cogs", "Cog", "cg")) },
			want: `slows slow Slow SlowList []
NamesAccepted=False ShortNamesConflict: "cg" is already in use
Established=True InitialNamesAccepted: the initial names have been accepted`,
		},
		{
			name:   "a name that it gives back is asked for",
			before: []string{cogs(group, "slows", "Slow", "cg")},
			slow: func(s *server) error {
				_, err := s.change("slows."+group, "", func(c *v1.CustomResourceDefinition) { c.Spec.Names.ShortNames = nil })
				return err
			},
			meanwhile: func(_ *testing.T, s *server) { s.define(cogs(group, "cogs", "Cog", "cg")) },
			want: `slows slow Slow SlowList []
NamesAccepted=True NoConflicts: no conflicts found
Established=True InitialNamesAccepted: the initial names have been accepted`,
		},
		{
			name:      "another group does not matter",
			slow:      func(s *server) error { _, err := s.try(s.crds(""), cogs(group, "slows", "Cog")); return err },
			meanwhile: func(_ *testing.T, s *server) { s.define(cogs("example.org", "cogs", "Cog")) },
			want: `slows cog Cog CogList []
NamesAccepted=True NoConflicts: no conflicts found
Established=True InitialNamesAccepted: the initial names have been accepted`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := memkv.New(memkv.Options{})
			t.Cleanup(func() { store.Close() })
			quick := startOver(t, store)
			for _, d := range test.before {
				quick.define(d)
			}
			held, arrived, proceed := slow(t, store, "slows."+group)
			t.Cleanup(proceed)
			done := make(chan error, 1)
			go func() { done <- test.slow(held) }()
			select {
			case <-arrived:
			case err := <-done:
				t.Fatalf("the slow write did not come to be written: %v", err)
			}
			test.meanwhile(t, quick)
			proceed()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			for _, s := range []*server{held, quick} {
				if got := summary(s.stored("slows." + group)); got != test.want {
					t.Errorf("got\n%s\nwant\n%s", got, test.want)
				}
				s.eventually("cogs."+group, "has its names or is gone", func(c *v1.CustomResourceDefinition) bool { return c == nil || accepted(c) })
			}
		})
	}
}

// A Registrar over another one serves its definitions as they were, and each of the two changes only its own.
func TestRegistrarOver(t *testing.T) {
	below := start(t)
	below.define(widgets)
	first := below.target("example.com", "widgets", "", "").Definition
	state, release, err := kv.Keep(t.Context(), below.store, kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := below.change("widgets.example.com", "", func(c *v1.CustomResourceDefinition) {
		c.Labels = map[string]string{"a": "b"}
	}); err != nil {
		t.Fatal(err)
	}
	store := memkv.New(memkv.Options{Over: state})
	defer store.Close()
	above := startWith(t, store, crd.Options{Over: below.registrar, Base: state.Revision()})
	shared := above.target("example.com", "widgets", "", "").Definition
	if guard, _ := above.registrar.Source(shared); guard.Revision != above.revision("widgets.example.com") {
		t.Errorf("the guard is at %d: it is that of the store below", guard.Revision)
	}
	if _, err := above.try(registry.StorageTarget(shared, "", ""), widget); err != nil {
		t.Error(err)
	}
	if _, err := above.change("widgets.example.com", "", func(c *v1.CustomResourceDefinition) {
		second := *c.Spec.Versions[0].DeepCopy()
		second.Name, c.Spec.Versions[0].Storage = "v2", false
		c.Spec.Versions = append(c.Spec.Versions, second)
	}); err != nil {
		t.Fatal(err)
	}
	if v := above.target("example.com", "widgets", "", "").Definition.StorageVersion().Name; v != "v2" {
		t.Errorf("the storage version above is %s", v)
	}
	if d := below.target("example.com", "widgets", "", "").Definition; d != first {
		t.Error("the definition below has changed")
	}
	select {
	case <-below.catalog.Retired(first):
		t.Error("the definition below is retired")
	default:
	}
	<-above.catalog.Retired(shared)
}
