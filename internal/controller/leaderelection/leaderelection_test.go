package leaderelection

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
)

// The Lease of these tests.
const lease = "lease dev/scheduler"

type world struct {
	*controllertest.World
	controller *Controller // the last started one
}

func in(t *testing.T, test func(w *world)) {
	w := &world{}
	of := controller.Descriptor{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
		w.controller = New(o, q).(*Controller)
		return w.controller
	}}
	synctest.Test(t, func(t *testing.T) {
		w.World = controllertest.New(t, []controller.Descriptor{of}, gate.CoordinatedLeaderElection)
		w.Start()
		w.Create("namespace dev")
		w.Wait()
		test(w)
	})
}

func now() string { return microTime(time.Now()) }

// nominate creates a candidate for the Lease.
func (w *world) nominate(name, emulation, strategy string) {
	w.T.Helper()
	w.Create("leasecandidate dev/"+name, func(_ *controllertest.World, t object.Tree) {
		t["spec"] = object.Tree{
			"leaseName": "scheduler", "emulationVersion": emulation, "binaryVersion": "1.37.1", "strategy": strategy, "renewTime": now(),
		}
	})
	w.Wait()
}

// live runs the components with these candidates for a time: every second, each renews the Lease that it holds, gives up a
// Lease that another one should hold, and answers pings. The controller acts on an answer at once, and the component sees
// that a second later.
func (w *world) live(d time.Duration, names ...string) {
	w.T.Helper()
	for range d / time.Second {
		for _, name := range names {
			switch spec := kind.Tree(w.Get(lease), "spec"); {
			case kind.Text(spec, "holderIdentity") != name:
			case kind.Text(spec, "preferredHolder") != "":
				w.Edit(lease, func(t object.Tree) { kind.Child(t, "spec")["holderIdentity"] = "" })
			default:
				w.Edit(lease, func(t object.Tree) { kind.Child(t, "spec")["renewTime"] = now() })
			}
			spec := kind.Tree(w.Get("leasecandidate dev/"+name), "spec")
			if ping := kind.Text(spec, "pingTime"); ping > kind.Text(spec, "renewTime") {
				w.Edit("leasecandidate dev/"+name, func(t object.Tree) { kind.Child(t, "spec")["renewTime"] = now() })
			}
		}
		w.Sleep(time.Second)
	}
}

// shows compares the Lease with want: its holder, its preferred holder and its strategy.
func (w *world) shows(want string) {
	w.T.Helper()
	w.Wait()
	got := "no Lease"
	if t := w.Get(lease); t != nil {
		spec := kind.Tree(t, "spec")
		got = fmt.Sprintf("%q %q %s", kind.Text(spec, "holderIdentity"), kind.Text(spec, "preferredHolder"), kind.Text(spec, "strategy"))
	}
	if got != want {
		w.T.Fatalf("%s, want %s", got, want)
	}
}

// The first candidate leads at once. A better one replaces it once it has stepped down, and the next one after the leader
// fails.
func TestLeaders(t *testing.T) {
	in(t, func(w *world) {
		w.nominate("new", "1.37.0", "OldestEmulationVersion")
		w.shows(`"new" "" OldestEmulationVersion`)
		if got := kind.Value(w.Get(lease), "spec", "leaseDurationSeconds"); fmt.Sprint(got) != "5" {
			t.Errorf("leaseDurationSeconds is %v", got)
		}
		w.live(time.Minute, "new")
		w.shows(`"new" "" OldestEmulationVersion`)
		w.nominate("old", "1.36.0", "OldestEmulationVersion")
		w.live(time.Second, "old") // the answer of the other is missing
		w.shows(`"new" "" OldestEmulationVersion`)
		w.live(time.Second, "new", "old")
		w.shows(`"new" "old" OldestEmulationVersion`)
		w.live(3*time.Second, "new", "old")
		w.shows(`"old" "" OldestEmulationVersion`)
		w.live(time.Minute, "new") // the other one has failed
		w.shows(`"new" "" OldestEmulationVersion`)
	})
}

// A legacy holder keeps its Lease until it fails.
func TestHolderWithoutCandidate(t *testing.T) {
	in(t, func(w *world) {
		w.Create(lease, func(_ *controllertest.World, t object.Tree) {
			t["spec"] = object.Tree{"holderIdentity": "legacy", "leaseDurationSeconds": int64(15), "renewTime": now()}
		})
		w.nominate("new", "1.37.0", "OldestEmulationVersion")
		w.live(10*time.Second, "new")
		w.shows(`"legacy" "new" OldestEmulationVersion`)
		w.live(15*time.Second, "new")
		w.shows(`"new" "" OldestEmulationVersion`)
		w.Delete(lease, "")
		w.live(10*time.Second, "new")
		w.shows(`"new" "" OldestEmulationVersion`)
	})
}

// Another controller assigns the Lease for a strategy of its own. Candidates that disagree have no leader.
func TestOtherStrategies(t *testing.T) {
	in(t, func(w *world) {
		w.nominate("a", "1.37.0", "example.com/any")
		w.shows(`"" "" example.com/any`)
		w.Delete(lease, "")
		w.Delete("leasecandidate dev/a", "")
		w.nominate("b", "1.37.0", "example.com/any")
		w.nominate("c", "1.37.0", "OldestEmulationVersion")
		w.Delete(lease, "")
		w.live(20*time.Second, "b", "c")
		w.shows("no Lease")
		w.Delete("leasecandidate dev/b", "")
		w.live(20*time.Second, "c")
		w.shows(`"c" "" OldestEmulationVersion`)
	})
}

// A candidate that no longer answers is deleted half an hour after its last renewal. Others stay. A restart changes
// nothing.
func TestExpired(t *testing.T) {
	in(t, func(w *world) {
		w.nominate("live", "1.37.0", "OldestEmulationVersion")
		w.nominate("dead", "1.36.0", "OldestEmulationVersion")
		w.Create("leasecandidate dev/never", func(_ *controllertest.World, t object.Tree) {
			t["spec"] = object.Tree{"leaseName": "not a name", "binaryVersion": "1.37.1", "strategy": "example.com/any"}
		})
		there := func(want string) {
			t.Helper()
			w.Wait()
			var got []string
			for _, name := range strings.Fields("live dead never") {
				if w.Get("leasecandidate dev/"+name) != nil {
					got = append(got, name)
				}
			}
			if got := strings.Join(got, " "); got != want {
				t.Fatalf("there are %q, want %q", got, want)
			}
		}
		w.live(20*time.Minute, "live")
		there("live dead never")
		w.Stop()
		w.live(9*time.Minute, "live")
		w.Start()
		there("live dead never")
		w.live(2*time.Minute, "live")
		there("live")
		w.live(time.Hour, "live")
		there("live")
		w.shows(`"live" "" OldestEmulationVersion`)
	})
}

// The controller remembers Leases with candidates only, and does nothing without candidates.
func TestRemembersContendedLeasesOnly(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lease dev/node")
		w.nominate("a", "1.37.0", "OldestEmulationVersion")
		w.nominate("b", "1.37.0", "OldestEmulationVersion")
		w.Stop()
		w.Start()
		w.live(10*time.Second, "a", "b")
		if got := len(w.controller.contended); got != 1 {
			t.Errorf("%d Leases are remembered, want 1", got)
		}
		w.Delete("leasecandidate dev/a", "")
		w.Delete("leasecandidate dev/b", "")
		w.Sleep(2 * valid)
		if got := len(w.controller.contended); got != 0 || !w.controller.queue.Idle() {
			t.Errorf("%d Leases are remembered", got)
		}
	})
}
