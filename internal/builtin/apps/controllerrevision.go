package apps

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func controllerRevisions() *resource.Definition {
	return kind.Kind[*appsv1.ControllerRevision, *appsv1.ControllerRevisionList]{
		Definition: resource.Definition{
			Group: appsv1.GroupName, Plural: "controllerrevisions", Namespaced: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Columns: `
			Controller  string  owner      "Controller of the object"
			Revision    string  .revision
			Age
		`,
		Cells:    kind.Cells{"owner": controllerOf},
		Validate: validateControllerRevision,
	}.New()
}

// controllerOf returns the cell with the controller of an object.
func controllerOf(obj map[string]any) any {
	for _, r := range kind.List(obj, "metadata", "ownerReferences") {
		if owner, _ := r.(map[string]any); kind.Value(owner, "controller") == true {
			of := schema.FromAPIVersionAndKind(kind.Text(owner, "apiVersion"), kind.Text(owner, "kind")).GroupKind()
			return strings.ToLower(of.String()) + "/" + kind.Text(owner, "name")
		}
	}
	return "<none>"
}

func validateControllerRevision(c *rule.Check, r, old *appsv1.ControllerRevision) {
	c.Fields(r)
	if old != nil {
		c.At("data").Immutable(r.Data, old.Data)
		return
	}
	data := c.Object["data"]
	if _, ok := data.(map[string]any); ok {
		return
	}
	if data == nil {
		c.At("data").Required("data is mandatory")
		return
	}
	c.At("data").Required("data must be a valid JSON object")
}
