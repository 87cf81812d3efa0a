package crd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
	"github.com/anykind/anykind/internal/schema/crd/validation"
)

// definition is the Definition of the kind CustomResourceDefinition. The hooks that read other
// definitions belong to the Registrar.
func definition(r *Registrar) *resource.Definition {
	v := &resource.Version{
		Name: "v1", Served: true, Storage: true, Priority: 15,
		Schema:      newTypeSchema(),
		New:         func() runtime.Object { return &v1.CustomResourceDefinition{} },
		Columns:     definitionColumns,
		Revert:      resource.Changing(keepOwnStatus),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"},
			Revert: resource.Changing(keepSpec), Fields: []string{"metadata", "status"}, NoTable: true,
			Validate: resource.Looking(validateStatus),
		}},
	}
	return resource.New(resource.Definition{
		Group:         Group,
		Plural:        Plural,
		Singular:      strings.ToLower(Kind),
		Kind:          Kind,
		ListKind:      Kind + "List",
		ShortNames:    []string{"crd", "crds"},
		Categories:    []string{"api-extensions"},
		GroupPriority: 16700,
		Dialect:       resource.CompiledIn,
		Versions:      []*resource.Version{v},
		StoragePrefix: Prefix,
		StoredAs:      schema.FromAPIVersionAndKind(beta, Kind),
		HasGeneration: true,
		Strategy: resource.Strategy{
			PreconditionFailed: "precondition failed",
			BeforeDelete: func(_ context.Context, c *resource.Change, _ *metav1.DeleteOptions) {
				prepareDelete(c.Object, r.o.Now())
			},
			Prepare: resource.Changing(prepare),
			Validate: func(_ context.Context, c *resource.Change) field.ErrorList {
				return validate(c.Object, c.Old, c.Gates.Compatible(), r.logCosts(c.Object))
			},
			Warn: resource.Looking(func(obj, old map[string]any) []string {
				return append(validation.Warnings(obj, old), warnOfRules(obj, old)...)
			}),
			Begin: r.begin,
			Resolve: func(ctx context.Context, c *resource.Change) ([]resource.Mark, error) {
				return r.resolveNames(ctx, c.Object, c.Old)
			},
			Committed: r.Committed,
		},
	})
}

// keepSpec restores the spec in a write of the status. Such a write may change metadata, for example
// remove a finalizer together with its condition.
func keepSpec(obj, old map[string]any) {
	keepField(obj, old, "spec")
}

// keepField restores a field of old in obj.
func keepField(obj, old object.Tree, field string) {
	if v, ok := old[field]; ok {
		obj[field] = v
	} else {
		delete(obj, field)
	}
}

// keepOwnStatus keeps the status, but adds the storage version to storedVersions. A write of the
// object never removes one of them; only a write of the status can.
func keepOwnStatus(obj, old object.Tree) {
	keepField(obj, old, "status")
	addStoredVersion(obj)
}

// prepare fills in the defaults of a CustomResourceDefinition and writes its status
// in full.
func prepare(obj, old object.Tree) {
	setDefaults(obj)
	keepRules(obj, old)
	editStatus(obj, func(*v1.CustomResourceDefinitionStatus) {})
}

// prepareDelete keeps a deleted CustomResourceDefinition until its objects are gone.
func prepareDelete(obj object.Tree, now time.Time) {
	finalizers := object.Finalizers(obj)
	if !slices.Contains(finalizers, v1.CustomResourceCleanupFinalizer) {
		object.SetFinalizers(obj, append(finalizers, v1.CustomResourceCleanupFinalizer))
	}
	editStatus(obj, func(status *v1.CustomResourceDefinitionStatus) {
		conditions.Set(status, condition{
			Type: v1.Terminating, Status: v1.ConditionTrue, Reason: "InstanceDeletionPending",
			Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
		}, now)
	})
}

// editStatus replaces the status of obj by a changed one.
func editStatus(obj object.Tree, edit func(status *v1.CustomResourceDefinitionStatus)) {
	status := &v1.CustomResourceDefinitionStatus{}
	if tree, ok := obj["status"].(object.Tree); ok {
		if crd, err := typed(object.Tree{"status": tree}); err == nil {
			status = &crd.Status
		}
	}
	edit(status)
	setStatus(obj, status)
}

// definitionColumns are the columns of a table of CustomResourceDefinitions.
func definitionColumns() []view.Column {
	spec := func(path ...string) func(map[string]any) any {
		return func(obj map[string]any) any { return text(obj, append([]string{"spec"}, path...)) }
	}
	return []view.Column{
		{Name: "Scope", Type: "string", Description: "Cluster/Namespaced", Cell: spec("scope")},
		{Name: "Versions", Type: "string", Description: "Served versions", Cell: servedVersions},
		{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
			Cell: func(obj map[string]any) any { return object.MetaString(obj, "creationTimestamp") }},
		{Name: "Group", Type: "string", Description: "API group", Priority: 1, Cell: spec("group")},
		{Name: "Kind", Type: "string", Description: "CustomResource kind", Priority: 1, Cell: spec("names", "kind")},
		{Name: "ShortNames", Type: "string", Description: "Short names", Priority: 1, Cell: shortNames},
		{Name: "Established", Type: "boolean", Description: "Established status", Priority: 1, Cell: isEstablished},
	}
}

func servedVersions(obj map[string]any) any {
	var out []string
	for _, v := range list(obj, "spec", "versions") {
		v, _ := v.(object.Tree)
		name, _ := v["name"].(string)
		if v["served"] != true {
			continue
		}
		if v["storage"] == true {
			name += "(storage)"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func shortNames(obj map[string]any) any {
	var out []string
	for _, s := range list(obj, "spec", "names", "shortNames") {
		s, _ := s.(string)
		out = append(out, s)
	}
	return strings.Join(out, ",")
}

func isEstablished(obj map[string]any) any {
	for _, c := range list(obj, "status", "conditions") {
		c, _ := c.(object.Tree)
		if c["type"] == string(v1.Established) && c["status"] == string(v1.ConditionTrue) {
			return true
		}
	}
	return false
}

// text returns the value at the end of a path as text, or "".
func text(obj object.Tree, path []string) string {
	for _, field := range path[:len(path)-1] {
		obj, _ = obj[field].(object.Tree)
	}
	v := obj[path[len(path)-1]]
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// list returns the list at the end of a path, or nil.
func list(obj object.Tree, path ...string) []any {
	for _, field := range path[:len(path)-1] {
		obj, _ = obj[field].(object.Tree)
	}
	l, _ := obj[path[len(path)-1]].([]any)
	return l
}
