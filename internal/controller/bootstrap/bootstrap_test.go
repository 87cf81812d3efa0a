package bootstrap

import (
	"fmt"
	"testing"
	"testing/synctest"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// All objects are created at the start. After that nothing is written.
func TestMade(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		for what, count := range map[string]int{"flowschema": 11, "prioritylevelconfiguration": 8} {
			all := specs()[what+"s"]
			if len(all) != count {
				t.Errorf("%d of %s, want %d", len(all), what, count)
			}
			for name := range all {
				got := w.Get(what + " " + name)
				if fmt.Sprint(kind.Value(got, "metadata", "generation")) != "1" || says(got) != "true" {
					t.Errorf("%s %s: %v", what, name, got)
				}
			}
		}
		if got := w.Get("priorityclass system-node-critical"); got["value"] != float64(2000001000) || got["preemptionPolicy"] != "PreemptLowerPriority" {
			t.Error(got)
		}
	})
}

func says(t object.Tree) string {
	return kind.Text(t, "metadata", "annotations", flowcontrolv1.AutoUpdateAnnotationKey)
}

// Stored or changed objects are repaired if their annotation allows it.
func TestKept(t *testing.T) {
	const limited = `type: Limited, limited: {nominalConcurrencyShares: %d, lendablePercent: 33, limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}}`
	const annotated = `annotations: {apf.kubernetes.io/autoupdate-spec: "%s"}`
	for _, tt := range []struct{ name, metadata, want string }{
		{name: "the annotation is true", metadata: fmt.Sprintf(annotated, "true"), want: "30 true"},
		{name: "the annotation is false", metadata: fmt.Sprintf(annotated, "false"), want: "7 false"},
		{name: "no annotation, generation 1", metadata: "generation: 1", want: "30 true"},
		{name: "no annotation, generation 2", metadata: "generation: 2", want: "7 false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := controllertest.New(t, []controller.Descriptor{{Name: Name, New: New}})
				w.Store("prioritylevelconfiguration system", fmt.Sprintf(`{metadata: {%s}, spec: {`+limited+`}}`, tt.metadata, 7))
				w.Start()
				w.Wait()
				got := w.Get("prioritylevelconfiguration system")
				if got := fmt.Sprint(kind.Value(got, "spec", "limited", "nominalConcurrencyShares"), " ", says(got)); got != tt.want {
					t.Errorf("it has %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// A deleted object is created again, and an unknown auto-updated object is deleted. PriorityClasses
// are not repaired after the start.
func TestDeleted(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Delete("flowschema service-accounts", "")
		w.Delete("priorityclass system-node-critical", "")
		for name, kept := range map[string]string{"old": "true", "mine": "false"} {
			w.Store("flowschema "+name, fmt.Sprintf(`{metadata: {annotations: {apf.kubernetes.io/autoupdate-spec: %q}}, spec: {matchingPrecedence: 5, priorityLevelConfiguration: {name: exempt}}}`, kept))
		}
		w.Wait()
		for what, there := range map[string]bool{
			"flowschema service-accounts": true, "flowschema old": false, "flowschema mine": true, "priorityclass system-node-critical": false,
		} {
			if got := w.Get(what) != nil; got != there {
				t.Errorf("%s is there: %v, want %v", what, got, there)
			}
		}
	})
}

// The exempt level can only change its shares.
func TestExempt(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Edit("prioritylevelconfiguration exempt", func(t object.Tree) {
			kind.Tree(t, "spec", "exempt")["nominalConcurrencyShares"] = int64(3)
		})
		w.Wait()
		if got := kind.Value(w.Get("prioritylevelconfiguration exempt"), "spec", "exempt", "nominalConcurrencyShares"); fmt.Sprint(got) != "3" {
			t.Errorf("it has %v shares", got)
		}
	})
}
