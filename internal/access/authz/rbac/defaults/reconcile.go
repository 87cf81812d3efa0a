package defaults

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/object"
)

// An Outcome is the action that a stored object needs.
type Outcome int

// The outcomes.
const (
	Keep    Outcome = iota // it is complete, or exempt from updates
	Update                 // it was incomplete, and Reconcile has completed it
	Replace                // it is a binding to another role; the reference is immutable
)

// IsIn reports whether a stored object equals the default. It compares bytes, so it may return false
// for a modified object that is complete.
func (o *Object) IsIn(stored []byte) bool {
	found, err := object.Scan(stored, 0)
	if err != nil {
		return false
	}
	for key, value := range object.Metadata(o.Tree)["labels"].(object.Tree) {
		if found.Labels.Get(key) != value {
			return false
		}
	}
	if !bytes.Contains(stored, []byte(`"`+rbacv1.AutoUpdateAnnotationKey+`":"true"`)) {
		return false
	}
	if rule := o.Tree["aggregationRule"]; rule != nil {
		return bytes.HasPrefix(stored, bytes.TrimSuffix(object.AppendJSON(nil, object.Tree{"aggregationRule": rule}), []byte("}")))
	}
	content := object.Tree{}
	for _, field := range []string{"roleRef", "rules", "subjects"} { // all fields after the metadata
		if value, ok := o.Tree[field]; ok {
			content[field] = value
		}
	}
	return bytes.HasSuffix(stored, object.AppendJSON(nil, content)[1:])
}

// Reconcile adds missing parts to a stored object. It keeps additional ones.
func (o *Object) Reconcile(t object.Tree) Outcome {
	if says, _ := object.Metadata(t)["annotations"].(object.Tree); says[rbacv1.AutoUpdateAnnotationKey] == "false" {
		return Keep
	}
	if !reflect.DeepEqual(o.Tree["roleRef"], t["roleRef"]) {
		return Replace
	}
	changed := fill(t, o.Tree, "labels")
	changed = fill(t, o.Tree, "annotations") || changed
	changed = addRules(t, o.Tree) || changed
	changed = addSelectors(t, o.Tree) || changed
	if addMissing(t, o.Tree, "subjects") || changed {
		return Update
	}
	return Keep
}

// fill adds missing labels or annotations.
func fill(t, want object.Tree, field string) (changed bool) {
	metadata := object.Metadata(t)
	has, _ := metadata[field].(object.Tree)
	if has == nil {
		has = object.Tree{}
	}
	for key, value := range object.Metadata(want)[field].(object.Tree) {
		if _, ok := has[key]; !ok {
			has[key], changed = value, true
		}
	}
	if changed {
		metadata[field] = has
	}
	return changed
}

// addRules adds the rules of want that t does not cover.
func addRules(t, want object.Tree) bool {
	missing := rbac.Missing(policy(t), policy(want))
	rules, _ := t["rules"].([]any)
	for _, r := range missing {
		data, err := json.Marshal(r)
		if err != nil {
			panic(err) // a tree of strings
		}
		tree := object.Tree{}
		if err := json.Unmarshal(data, &tree); err != nil {
			panic(err)
		}
		rules = append(rules, tree)
	}
	if len(missing) > 0 {
		t["rules"] = rules
	}
	return len(missing) > 0
}

// policy returns the rules of a role.
func policy(t object.Tree) []rbacv1.PolicyRule {
	var role struct{ Rules []rbacv1.PolicyRule }
	if json.Unmarshal(object.AppendJSON(nil, object.Tree{"rules": t["rules"]}), &role) != nil {
		return nil
	}
	return role.Rules
}

// addSelectors adds the missing selectors of an aggregation rule. It removes the aggregation rule of
// a role that must not have one.
func addSelectors(t, want object.Tree) bool {
	wanted, _ := want["aggregationRule"].(object.Tree)
	has, _ := t["aggregationRule"].(object.Tree)
	switch {
	case wanted == nil && has == nil:
		return false
	case wanted == nil:
		delete(t, "aggregationRule")
		return true
	case has == nil:
		has = object.Tree{}
	}
	changed := addMissing(has, wanted, "clusterRoleSelectors")
	if changed {
		t["aggregationRule"] = has
	}
	return changed
}

// addMissing adds the missing elements of a list.
func addMissing(t, want object.Tree, field string) (changed bool) {
	has, _ := t[field].([]any)
	wanted, _ := want[field].([]any)
	for _, element := range wanted {
		if !slices.ContainsFunc(has, func(h any) bool { return reflect.DeepEqual(h, element) }) {
			has, changed = append(has, object.Clone(element)), true
		}
	}
	if changed {
		t[field] = has
	}
	return changed
}

// Before returns the name of the binding that preceded this one, or "". Until Kubernetes v1.14,
// system:public-info-viewer was part of system:discovery.
func (o *Object) Before() string {
	if o.Resource == "clusterrolebindings" && object.Name(o.Tree) == "system:public-info-viewer" {
		return "system:discovery"
	}
	return ""
}

// Inherit gives a new binding the subjects, labels and annotations of its predecessor, so that an
// administrator's restriction of public access stays in force.
func (o *Object) Inherit(stored []byte) {
	var before object.Tree
	if json.Unmarshal(stored, &before) != nil {
		return
	}
	own := object.CloneTree(o.Tree)
	for _, field := range []string{"labels", "annotations"} {
		object.Metadata(own)[field] = object.Metadata(before)[field]
	}
	own["subjects"] = before["subjects"]
	o.Reconcile(own)
	o.Tree = own
}
