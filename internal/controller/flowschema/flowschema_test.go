package flowschema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

const (
	level = `{spec: {type: Exempt, exempt: {}}}`
	of    = `{spec: {matchingPrecedence: 5, priorityLevelConfiguration: {name: %s}}, status: {conditions: [%s]}}`
	found = `This FlowSchema references the PriorityLevelConfiguration object named "a" and it exists`
	none  = `This FlowSchema references the PriorityLevelConfiguration object named "%s" but there is no such object`
)

// A FlowSchema gets its condition at the start, and again after a change an hour later.
func TestDangling(t *testing.T) {
	missing := "True NotFound " + fmt.Sprintf(none, "a")
	for _, tt := range []struct {
		name   string
		has    string // conditions of the FlowSchema
		level  bool   // the level exists
		change func(w *controllertest.World)
		want   string
		hours  int // until the last transition
	}{
		{name: "there", level: true, want: "False Found " + found},
		{name: "missing", want: missing},
		{name: "known to be missing", has: `{type: Dangling, status: "True", reason: NotFound, message: '` + fmt.Sprintf(none, "a") + `', lastTransitionTime: "1999-12-31T12:00:00Z"}`, want: missing, hours: -12},
		{name: "others have said something else", has: `{type: Dangling, status: "True", reason: Other, lastTransitionTime: "1999-12-31T12:00:00Z"}`, want: missing},
		{name: "made later", change: func(w *controllertest.World) { w.Store("prioritylevelconfiguration a", level) }, want: "False Found " + found, hours: 1},
		{name: "deleted", level: true, change: func(w *controllertest.World) { w.Delete("prioritylevelconfiguration a", "") }, want: missing, hours: 1},
		{name: "something else is there", change: func(w *controllertest.World) { w.Store("prioritylevelconfiguration b", level) }, want: missing},
		{name: "names another", change: func(w *controllertest.World) {
			w.Edit("flowschema f", func(t object.Tree) { kind.Tree(t, "spec", "priorityLevelConfiguration")["name"] = "b" })
		}, want: "True NotFound " + fmt.Sprintf(none, "b"), hours: 1},
		{name: "a wrong condition", level: true, change: func(w *controllertest.World) {
			w.Store("flowschema f", fmt.Sprintf(of, "a", `{type: Dangling, status: "True"}`))
		}, want: "False Found " + found, hours: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
				began := time.Now()
				if tt.level {
					w.Store("prioritylevelconfiguration a", level)
				}
				w.Store("flowschema f", fmt.Sprintf(of, "a", strings.Join([]string{`{type: Other, status: "True"}`, tt.has}, ", ")))
				w.Wait()
				if tt.change != nil {
					w.Sleep(time.Hour)
					tt.change(w)
					w.Wait()
				}
				var got, at string
				for _, one := range kind.List(w.Get("flowschema f"), "status", "conditions") {
					if c := one.(object.Tree); c["type"] == "Dangling" {
						got, at = fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"]), kind.Text(c, "lastTransitionTime")
					}
				}
				if got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
				if want := object.Timestamp(began.Add(time.Duration(tt.hours) * time.Hour)); at != want {
					t.Errorf("since %s, want %s", at, want)
				}
			})
		})
	}
}

// Other conditions in the status stay. The controller is the field manager of its own.
func TestOthers(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Store("flowschema f", fmt.Sprintf(`{metadata: {managedFields: [{manager: me, operation: Update, apiVersion: %s, fieldsType: FieldsV1, fieldsV1: {'f:spec': {}}}]}, %s`,
			flowcontrolv1.SchemeGroupVersion, fmt.Sprintf(of, "a", `{type: Other, status: "True"}`)[1:]))
		w.Wait()
		got := w.Get("flowschema f")
		if n := len(kind.List(got, "status", "conditions")); n != 2 {
			t.Errorf("there are %d conditions", n)
		}
		var managers []string
		for _, m := range kind.List(got, "metadata", "managedFields") {
			managers = append(managers, kind.Text(m.(object.Tree), "operation")+" by "+kind.Text(m.(object.Tree), "manager")+" of "+kind.Text(m.(object.Tree), "subresource"))
		}
		if want := []string{"Apply by api-priority-and-fairness-config-consumer-v1 of status", "Update by me of "}; !slices.Equal(managers, want) {
			t.Errorf("managed by %q, want %q", managers, want)
		}
	})
}

// While another client writes another condition, the controller writes its own six times a minute.
func TestDisagreement(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Store("prioritylevelconfiguration a", level)
		disagree := func(name string) {
			w.Store(name, fmt.Sprintf(of, "a", `{type: Dangling, status: "True"}`))
			w.Wait()
		}
		right := func(name string) bool {
			for _, one := range kind.List(w.Get(name), "status", "conditions") {
				if c := one.(object.Tree); c["type"] == "Dangling" {
					return c["status"] == "False"
				}
			}
			return false
		}
		for minute := range 3 {
			updates := 0
			for range 20 {
				disagree("flowschema f")
				w.Sleep(time.Second)
				w.Wait()
				if right("flowschema f") {
					updates++
				}
			}
			// From the second minute on, the first update was at the end of the minute before.
			if want := most - min(minute, 1); updates != want {
				t.Errorf("%d updates in minute %d, want %d", updates, minute, want)
			}
			disagree("flowschema g")
			if !right("flowschema g") {
				t.Error("the other FlowSchema is not updated")
			}
			w.Sleep(40 * time.Second)
			w.Wait()
			if !right("flowschema f") {
				t.Errorf("no update at the end of minute %d", minute)
			}
		}
	})
}
