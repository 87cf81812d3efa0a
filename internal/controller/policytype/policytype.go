// Package policytype reports errors in the expressions of each ValidatingAdmissionPolicy in its
// status. It checks their types for the kinds that the policy matches.
package policytype

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// Name is the name of the controller in kube-controller-manager.
const Name = "validatingadmissionpolicy-status-controller"

// manager is the field manager of the status.
const manager = "validatingadmissionpolicy-status"

// maxTypes limits the number of kinds for which the expressions of a policy are checked.
const maxTypes = 10

// A Controller checks each generation of a policy once.
type Controller struct {
	objects  *controller.Objects
	queue    *controller.Queue
	policies string // key prefix of policies
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o.ManagedBy(manager), queue: q, policies: o.Prefix(admissionregistrationv1.GroupName, "validatingadmissionpolicies")}
}

// Keys returns the key prefix of policies.
func (c *Controller) Keys() []string { return []string{c.policies} }

// See queues a policy that was created or updated.
func (c *Controller) See(e *controller.Event) {
	if e.Value != nil {
		c.queue.Add(controller.Task{Key: e.Key})
	}
}

// Do checks the expressions of a policy, unless its status has the present generation.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	h, err := c.objects.Read(ctx, t.Key)
	if err != nil || h == nil {
		return err
	}
	var p admissionregistrationv1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(h.JSON, &p); err != nil {
		return err
	}
	if p.Generation <= p.Status.ObservedGeneration {
		return nil
	}
	if err := c.objects.Refresh(ctx); err != nil {
		return err
	}
	warnings, err := Check(c.objects.Catalog.Set(), &p)
	if err != nil {
		return err
	}
	d := c.objects.Lookup(admissionregistrationv1.GroupName, "validatingadmissionpolicies")
	return c.objects.Change(ctx, d, h.Key, h.UID, "status", func(t object.Tree) bool {
		if object.Generation(t) != p.Generation {
			return false // another task will follow
		}
		checking := object.Tree{}
		if len(warnings) > 0 {
			checking["expressionWarnings"] = warnings
		}
		status, _ := t["status"].(object.Tree)
		if status == nil {
			status = object.Tree{}
		}
		status["observedGeneration"], status["typeChecking"] = p.Generation, checking
		t["status"] = status
		return true
	})
}

// Check returns the type errors in the expressions of a policy.
func Check(set *resource.Set, p *admissionregistrationv1.ValidatingAdmissionPolicy) ([]any, error) {
	var types []celpolicy.Type
	for _, kind := range kindsOf(set, p.Spec.MatchConstraints) {
		if t, ok := typeOf(set, kind); ok {
			types = append(types, t)
		}
	}
	var params celpolicy.Type
	if k := p.Spec.ParamKind; k != nil {
		if gv, err := schema.ParseGroupVersion(k.APIVersion); err == nil {
			params, _ = typeOf(set, gv.WithKind(k.Kind))
		}
	}
	checker, err := celpolicy.NewTypeChecker(types, p.Spec.ParamKind != nil, params, p.Spec.Variables)
	if err != nil {
		return nil, err
	}
	var warnings []any
	warn := func(at *field.Path, expression string) {
		if warning := checker.Check(expression); warning != "" {
			warnings = append(warnings, object.Tree{"fieldRef": at.String(), "warning": warning})
		}
	}
	for i, v := range p.Spec.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		warn(at.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			warn(at.Child("messageExpression"), v.MessageExpression)
		}
	}
	return warnings, nil
}

// kindsOf returns the kinds that rules name, without wildcards and subresources. It returns at most
// maxTypes of one rule, and ignores further rules then.
func kindsOf(set *resource.Set, match *admissionregistrationv1.MatchResources) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	if match == nil {
		return nil
	}
	add := func(found []schema.GroupVersionKind, count int) int {
		for _, k := range found {
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
			if count++; count == maxTypes {
				break
			}
		}
		return count
	}
	wild := func(s string) bool { return strings.Contains(s, "*") }
rules:
	for _, r := range match.ResourceRules {
		if slices.ContainsFunc(r.APIGroups, wild) || slices.ContainsFunc(r.APIVersions, wild) {
			continue
		}
		count := 0
		for _, group := range slices.Sorted(slices.Values(r.APIGroups)) {
			for _, version := range slices.Sorted(slices.Values(r.APIVersions)) {
				for _, plural := range slices.Sorted(slices.Values(r.Resources)) {
					if strings.ContainsAny(plural, "*/") {
						continue
					}
					if count = add(kindsFor(set, group, version, plural), count); count == maxTypes {
						break rules
					}
				}
			}
		}
	}
	order.Stable(kinds, func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Group, a.Version, a.Kind}, []string{b.Group, b.Version, b.Kind})
	})
	return kinds
}

// kindsFor returns the kinds of a resource, whose name may be the singular. As in Kubernetes, an
// empty group matches all groups.
func kindsFor(set *resource.Set, group, version, name string) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	name = strings.ToLower(name)
	for _, g := range set.Groups() {
		for _, d := range g.Definitions {
			if group != "" && d.Group != group || d.Plural != name && d.Singular != name {
				continue
			}
			if v := d.Version(version); v != nil && v.Served {
				found = append(found, d.GroupVersionKind(version))
			}
		}
	}
	return found
}

// typeOf returns the type of a served kind.
func typeOf(set *resource.Set, kind schema.GroupVersionKind) (celpolicy.Type, bool) {
	g := set.Group(kind.Group)
	if g == nil {
		return celpolicy.Type{}, false
	}
	for _, d := range g.Definitions {
		if v := d.Version(kind.Version); d.Kind == kind.Kind && v != nil && v.Served {
			return celpolicy.TypeOf(kind, v.Schema.Model()), true
		}
	}
	return celpolicy.Type{}, false
}
