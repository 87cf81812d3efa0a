package compile

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// statusSubresource is the /status of every custom resource that has one.
var statusSubresource = []resource.Subresource{{
	Name:   "status",
	Verbs:  []string{"get", "patch", "update"},
	Revert: resource.Changing(keepAllButStatus),
	Fields: []string{"status"},
}}

// keepStatus returns a hook that keeps the status in a write of the object itself. A new object has
// the default status of its schema, or none.
func keepStatus(schema resource.Schema) func(obj, old object.Tree) {
	return func(obj, old object.Tree) {
		status, ok := old["status"]
		if old == nil {
			everyObject := object.Tree{}
			schema.Default(everyObject)
			status, ok = everyObject["status"]
		}
		if ok {
			obj["status"] = status
		} else {
			delete(obj, "status")
		}
	}
}

// keepAllButStatus sets all fields of obj but the status to those of the old object. managedFields
// change with the status, and the resourceVersion is the client's precondition.
func keepAllButStatus(obj, old object.Tree) {
	status, hasStatus := obj["status"]
	metadata := object.Metadata(obj)
	for k := range obj {
		delete(obj, k)
	}
	for k, v := range old {
		obj[k] = object.Clone(v)
	}
	if hasStatus {
		obj["status"] = status
	} else {
		delete(obj, "status")
	}
	was := object.Metadata(obj)
	for _, field := range []string{"managedFields", "resourceVersion"} {
		if v, ok := metadata[field]; ok {
			was[field] = v
		} else {
			delete(was, field)
		}
	}
}
