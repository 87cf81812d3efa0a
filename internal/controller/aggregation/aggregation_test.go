package aggregation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// rules is a feature of a role: rules for these resources.
func rules(resources ...string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) { t["rules"] = about(resources...) }
}

func about(resources ...string) (rules []any) {
	for _, r := range resources {
		rules = append(rules, object.Tree{"apiGroups": []any{""}, "resources": []any{r}, "verbs": []any{"get"}})
	}
	return rules
}

func labelled(key string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		object.Metadata(t)["labels"] = object.Tree{key: "true"}
	}
}

// takes is a feature of a role: it aggregates the roles with a label.
func takes(labels ...string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		var selectors []any
		for _, l := range labels {
			selectors = append(selectors, object.Tree{"matchLabels": object.Tree{l: "true"}})
		}
		t["aggregationRule"] = object.Tree{"clusterRoleSelectors": selectors}
	}
}

// An aggregated role always has the rules of the roles that it selects.
func TestAggregation(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		check := func(name, want string) {
			t.Helper()
			w.Wait()
			var got []any
			list, _ := w.Get("clusterrole " + name)["rules"].([]any)
			for _, r := range list {
				got = append(got, r.(object.Tree)["resources"].([]any)...)
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s has rules about %v, want %s", name, got, want)
			}
		}
		w.Create("clusterrole view", takes("to-view"), labelled("to-edit"))
		w.Create("clusterrole edit", takes("to-edit", "to-other"), labelled("to-edit"))
		check("view", "[]")
		w.Create("clusterrole z", labelled("to-view"), rules("pods", "services"))
		w.Create("clusterrole a", labelled("to-view"), rules("services", "nodes"))
		check("view", "[services nodes pods]")
		check("edit", "[services nodes pods]")
		w.Create("clusterrole b", labelled("to-other"), rules("secrets", "pods"))
		check("edit", "[services nodes pods secrets]")
		w.Edit("clusterrole a", func(t object.Tree) { t["rules"] = about("jobs") })
		check("view", "[jobs pods services]")
		w.Edit("clusterrole view", func(t object.Tree) { t["rules"] = about("everything") })
		check("view", "[jobs pods services]")
		w.Delete("clusterrole z", "")
		w.Edit("clusterrole a", func(t object.Tree) { delete(object.Metadata(t), "labels") })
		check("view", "[]")
		check("edit", "[secrets pods]")
		w.Edit("clusterrole edit", func(t object.Tree) { delete(t, "aggregationRule") })
		w.Delete("clusterrole b", "")
		check("edit", "[secrets pods]")

		fields := fmt.Sprint(object.Metadata(w.Get("clusterrole edit"))["managedFields"])
		if want := "manager:" + Name + " operation:Apply"; !strings.Contains(fields, want) {
			t.Errorf("managed fields %s", fields)
		}
	})
}
