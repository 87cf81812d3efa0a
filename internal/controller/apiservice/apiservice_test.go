package apiservice

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// world runs a test in a world with the controller.
func world(t *testing.T, test func(w *controllertest.World)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, test)
}

// shown formats an APIService as one line.
func shown(t object.Tree) string {
	if t == nil {
		return "none"
	}
	spec := kind.Tree(t, "spec")
	var conditions []string
	for _, one := range kind.List(t, "status", "conditions") {
		condition, _ := one.(object.Tree)
		conditions = append(conditions, fmt.Sprintf("%v=%v %v", condition["type"], condition["status"], condition["reason"]))
	}
	return fmt.Sprintf("%v %v %v/%v %s", kind.Text(t, "metadata", "labels", managed), spec["group"], spec["groupPriorityMinimum"], spec["versionPriority"],
		strings.Join(conditions, ", "))
}

func check(w *controllertest.World, name, want string) {
	w.T.Helper()
	w.Wait()
	if got := shown(w.Get("apiservice " + name)); got != want {
		w.T.Errorf("%s is %s, want %s", name, got, want)
	}
}

// Each served version has an APIService, except the group of APIServices itself.
func TestWhatIsServed(t *testing.T) {
	world(t, func(w *controllertest.World) {
		for name, want := range map[string]string{
			"v1.":                       "onstart <nil> 18000/1 Available=True Local",
			"v1.apps":                   "onstart apps 17800/15 Available=True Local",
			"v2.autoscaling":            "onstart autoscaling 17500/30 Available=True Local",
			"v1.resource.k8s.io":        "onstart resource.k8s.io 16200/21 Available=True Local",
			"v1.apiextensions.k8s.io":   "onstart apiextensions.k8s.io 16700/15 Available=True Local",
			"v1.apiregistration.k8s.io": "none",
		} {
			check(w, name, want)
		}
	})
}

// APIServices of custom resources follow their definitions and are repaired. Users may change those
// of built-in kinds, and those without the label.
func TestKept(t *testing.T) {
	world(t, func(w *controllertest.World) {
		w.Define("Gadget", false)
		const custom = "true test.dev 1000/100 Available=True Local"
		group := w.Kinds["gadget"].Group
		name, want := "v1."+group, strings.ReplaceAll(custom, "test.dev", group)
		check(w, name, want)
		w.Delete("apiservice "+name, "")
		check(w, name, want)
		edit := func(name string, priority int64) {
			w.Edit("apiservice "+name, func(t object.Tree) { kind.Tree(t, "spec")["versionPriority"] = priority })
		}
		edit(name, 7)
		check(w, name, want)
		edit("v1.apps", 7)
		check(w, "v1.apps", "onstart apps 17800/7 Available=True Local")
		w.Edit("apiservice "+name, func(t object.Tree) {
			kind.Tree(t, "metadata")["labels"] = object.Tree{}
			kind.Tree(t, "spec")["versionPriority"] = int64(7)
		})
		check(w, name, strings.Replace(strings.Replace(want, "/100", "/7", 1), "true", "", 1))
	})
}

// The APIService of a version that is no longer served is deleted, even if the controller was not
// running at the time.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t, []controller.Descriptor{{Name: Name, New: New}})
		for name, label := range map[string]string{"v1.gone.dev": always, "v1.old.dev": atStart, "v1.mine.dev": "", "v1.apps": atStart} {
			_, group, _ := strings.Cut(name, ".")
			labels := ""
			if label != "" {
				labels = fmt.Sprintf("labels: {%s: %q}", managed, label)
			}
			w.Store("apiservice "+name, fmt.Sprintf(`{metadata: {%s}, spec: {group: %s, version: v1, groupPriorityMinimum: 5, versionPriority: 6}}`, labels, group))
		}
		w.Start()
		w.Wait()
		check(w, "v1.gone.dev", "none")
		check(w, "v1.old.dev", "none")
		check(w, "v1.mine.dev", " mine.dev 5/6 ")
		check(w, "v1.apps", "onstart apps 17800/15 ")
	})
}
