package crd

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// definition is the Definition of the kind CustomResourceDefinition. The hooks
// that need to know what else is stored are the Registrar's.
func definition(r *Registrar) *resource.Definition {
	v := &resource.Version{
		Name: "v1", Served: true, Storage: true,
		Schema:  newTypeSchema(),
		New:     func() runtime.Object { return &v1.CustomResourceDefinition{} },
		Columns: definitionColumns(),
		Keep:    keepStatus,
		Reset:   []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Keep: keepSpec, Reset: []string{"spec"},
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
		Versions:      []*resource.Version{v},
		StoragePrefix: Prefix,
		HasGeneration: true,
		Convert:       convertBeta,
		Prepare:       func(obj, old map[string]any) { prepare(obj, old, r.claimsOfOthers, r.o.Now()) },
		Warn:          warnOfSchemas,
		Validate:      func(obj, old map[string]any) field.ErrorList { return validate(obj, old, r.logCosts(obj)) },
		PrepareDelete: func(obj map[string]any, _ *metav1.DeleteOptions) { prepareDelete(obj, r.o.Now()) },
		Begin:         r.begin,
		Committed:     r.Committed,
	})
}

// keepSpec lets a write of the status change anything but the spec: metadata is
// not spared, which is how a finalizer goes together with the condition that says
// why.
func keepSpec(obj, old map[string]any) {
	if spec, ok := old["spec"]; ok {
		obj["spec"] = spec
	} else {
		delete(obj, "spec")
	}
}

// prepare completes a CustomResourceDefinition: defaults, the versions that
// objects may be stored in, and the outcome for its names. others returns what
// the other CustomResourceDefinitions of a group are called.
func prepare(obj, old object.Tree, others func(group, name string) claims, now time.Time) {
	setDefaults(obj)
	crd, err := typedWithoutSchemas(obj)
	if err != nil {
		return // Validate says so
	}
	if crd.Spec.PreserveUnknownFields {
		if whole, err := typed(obj); err == nil {
			crd = whole
		}
	}
	if old == nil {
		crd.Status = v1.CustomResourceDefinitionStatus{}
	}
	// A write of the status may take versions out of the list, one of the object
	// itself never does.
	if old == nil || object.Equal(obj["status"], old["status"]) {
		stored := &crd.Status.StoredVersions
		i := slices.IndexFunc(crd.Spec.Versions, func(v v1.CustomResourceDefinitionVersion) bool { return v.Storage })
		if i >= 0 && !slices.Contains(*stored, crd.Spec.Versions[i].Name) {
			*stored = append(*stored, crd.Spec.Versions[i].Name)
		}
	}
	if crd.DeletionTimestamp == nil {
		settle(crd, others(crd.Spec.Group, crd.Name), now)
	}
	setStatus(obj, &crd.Status)
}

// prepareDelete keeps a deleted CustomResourceDefinition until its objects are
// gone.
func prepareDelete(obj object.Tree, now time.Time) {
	finalizers := object.Finalizers(obj)
	if !slices.Contains(finalizers, v1.CustomResourceCleanupFinalizer) {
		object.SetFinalizers(obj, append(finalizers, v1.CustomResourceCleanupFinalizer))
	}
	editStatus(obj, func(status *v1.CustomResourceDefinitionStatus) {
		setCondition(status, condition{
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
func definitionColumns() []resource.Column {
	spec := func(path ...string) func(map[string]any) any {
		return func(obj map[string]any) any { return fieldText(obj, append([]string{"spec"}, path...)) }
	}
	return []resource.Column{
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

// list returns the list at the end of a path, or nil.
func list(obj object.Tree, path ...string) []any {
	for _, field := range path[:len(path)-1] {
		obj, _ = obj[field].(object.Tree)
	}
	l, _ := obj[path[len(path)-1]].([]any)
	return l
}
