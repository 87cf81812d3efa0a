package legacytoken

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

const (
	day    = 24 * time.Hour
	period = 10 * day
)

// in runs a test in a world with both controllers, and the account dev/robot, which lists
// the Secret listed.
func in(t *testing.T, test func(w *controllertest.World)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New(period)}, {Name: TrackingName, New: NewTracker}}, func(w *controllertest.World) {
		w.Create("namespace kube-system")
		w.Create("serviceaccount dev/robot", func(_ *controllertest.World, t object.Tree) {
			t["secrets"] = []any{object.Tree{"name": "listed"}}
		})
		w.Sleep(time.Minute)
		test(w)
	})
}

// create creates a Secret with a token.
func create(w *controllertest.World, name string, labels ...string) {
	w.Create("secret dev/"+name, func(_ *controllertest.World, t object.Tree) {
		t["type"] = "kubernetes.io/service-account-token"
		kind.Child(object.Metadata(t), "annotations")["kubernetes.io/service-account.name"] = "robot"
		for _, l := range labels {
			key, value, _ := strings.Cut(l, "=")
			serviceaccount.Label(t, key, value)
		}
	})
}

// is returns the state of a Secret.
func is(w *controllertest.World, name string) string {
	s := w.Get("secret dev/" + name)
	switch {
	case s == nil:
		return "gone"
	case kind.Pairs(s, "metadata", "labels")[serviceaccount.InvalidSinceLabel] != "":
		return "marked"
	}
	return "kept"
}

// An unused token is marked after a period, and deleted after another one.
func TestUnused(t *testing.T) {
	in(t, func(w *controllertest.World) {
		create(w, "listed")
		for _, tt := range []struct {
			after time.Duration
			want  string
		}{{period, "kept"}, {3 * day, "marked"}, {period - 3*day, "marked"}, {5 * day, "gone"}} {
			w.Sleep(tt.after)
			if got := is(w, "listed"); got != tt.want {
				t.Fatalf("after %v more it is %s, want it %s", tt.after, got, tt.want)
			}
		}
	})
}

// A used token stays.
func TestUsed(t *testing.T) {
	in(t, func(w *controllertest.World) {
		create(w, "listed")
		for range 5 {
			w.Sleep(period / 2)
			w.Edit("secret dev/listed", func(t object.Tree) {
				serviceaccount.Label(t, serviceaccount.LastUsedLabel, time.Now().UTC().Format(serviceaccount.DateFormat))
			})
		}
		if got := is(w, "listed"); got != "kept" {
			t.Error("it is", got)
		}
	})
}

// Secrets that are not eligible, or whose use is unknown, stay.
func TestKept(t *testing.T) {
	in(t, func(w *controllertest.World) {
		create(w, "manual")
		create(w, "listed", serviceaccount.LastUsedLabel+"=yesterday")
		w.Sleep(3 * period)
		for _, name := range []string{"manual", "listed"} {
			if got := is(w, name); got != "kept" {
				t.Error(name, "is", got)
			}
		}
	})
	in(t, func(w *controllertest.World) {
		create(w, "listed")
		w.Store("pod dev/p", `
metadata: {name: p}
spec: {containers: [{name: c, image: i}], volumes: [{name: v, secret: {secretName: listed}}]}
`)
		w.Sleep(3 * period)
		if got := is(w, "listed"); got != "kept" {
			t.Error("a pod uses it, and it is", got)
		}
	})
}

// The ConfigMap has the start of tracking. It is repaired and created again, at a limited rate.
func TestTracking(t *testing.T) {
	const name = "configmap kube-system/" + TrackingConfigMap
	in(t, func(w *controllertest.World) {
		today := time.Now().UTC().Format(serviceaccount.DateFormat)
		check := func(want string) {
			t.Helper()
			w.Wait()
			if got := fmt.Sprint(w.Get(name)["data"]); got != want {
				t.Fatalf("it says %s, want %s", got, want)
			}
		}
		check("map[since:" + today + "]")
		w.Edit(name, func(t object.Tree) { t["data"] = object.Tree{"since": "always", "x": "y"} })
		check("map[since:" + today + " x:y]")
		w.Edit(name, func(t object.Tree) { t["data"] = object.Tree{"since": "2001-02-03"} })
		check("map[since:2001-02-03]")
		w.Delete(name, "")
		check("<nil>")
		w.Sleep(creationPause)
		check("map[since:" + today + "]")
	})
}
