// Package aggregation maintains the rules of aggregated ClusterRoles: the union of the rules of the
// roles that they select by label.
package aggregation

import (
	"bytes"
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller, and its field manager.
const Name = "clusterrole-aggregation-controller"

// A Controller has one task, which processes all ClusterRoles. There are few, and a change of one
// role can affect any aggregated role.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	roles   string // key prefix
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{objects: o, queue: q, roles: o.Prefix(rbacv1.GroupName, "clusterroles")}
}

// Keys returns the key prefix of ClusterRoles.
func (c *Controller) Keys() []string { return []string{c.roles} }

// See queues the task: rules may have changed.
func (c *Controller) See(*controller.Event) { c.queue.Add(controller.Task{}) }

// A role is a stored ClusterRole.
type role struct {
	object.Encoded
	selectors []metav1.LabelSelector // of its aggregation rule
}

// Do updates the rules of each aggregated role. An error of one role does not affect the others.
func (c *Controller) Do(ctx context.Context, _ controller.Task) error {
	roles, err := c.read(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range roles {
		if r := &roles[i]; r.selectors != nil {
			errs = append(errs, c.give(ctx, r, roles))
		}
	}
	return errors.Join(errs...)
}

// read returns all roles, sorted by name.
func (c *Controller) read(ctx context.Context) (roles []role, err error) {
	err = c.objects.Pages(ctx, c.roles, func(p kv.Page) {
		for _, record := range p.Records {
			e, err := object.Scan(record.Value, record.Revision)
			if err != nil {
				continue // an unreadable role contributes no rules
			}
			roles = append(roles, role{e, selectors(record.Value)})
		}
	})
	order.Stable(roles, func(a, b role) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return roles, err
}

// selectors returns the selectors of a stored role's aggregation rule, nil if it has none.
func selectors(stored []byte) []metav1.LabelSelector {
	if !bytes.Contains(stored, []byte(`"aggregationRule":`)) {
		return nil
	}
	var content struct {
		AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	}
	if utiljson.Unmarshal(stored, &content) != nil || content.AggregationRule == nil {
		return nil
	}
	return append([]metav1.LabelSelector{}, content.AggregationRule.ClusterRoleSelectors...)
}

// rulesOf returns the rules of a stored role.
func rulesOf(r *role) ([]any, error) {
	var content struct {
		Rules []any `json:"rules"`
	}
	err := utiljson.Unmarshal(r.JSON, &content)
	return content.Rules, err
}

// give sets the rules of a role to those of all roles that it selects, without duplicates.
func (c *Controller) give(ctx context.Context, r *role, all []role) error {
	rules := []any{}
	for i := range r.selectors {
		selector, err := metav1.LabelSelectorAsSelector(&r.selectors[i])
		if err != nil {
			return err
		}
		if rules, err = take(rules, r, all, selector); err != nil {
			return err
		}
	}
	has, err := rulesOf(r)
	if err != nil || len(has) == 0 && len(rules) == 0 || object.Equal(has, rules) {
		return err
	}
	d := c.objects.Lookup(rbacv1.GroupName, "clusterroles")
	v := d.StorageVersion()
	wanted := object.Tree{"apiVersion": d.APIVersion(v.Name), "kind": d.Kind, "metadata": object.Tree{"name": r.Name}}
	if len(rules) > 0 {
		wanted["rules"] = rules
	}
	err = c.objects.Replace(ctx, d, "", r.Name, func(old object.Tree) (object.Tree, error) {
		if old == nil || object.UID(old) != r.UID {
			return nil, errOther
		}
		return apply.FieldsOf(d, v, "").Apply(ctx, old, wanted, Name, true)
	})
	if errors.Is(err, errOther) {
		return nil
	}
	return err
}

// errOther means that the role has been replaced. The event of the new one queues the task.
var errOther = errors.New("another role")

// take adds the rules of the selected roles, except the aggregated role itself.
func take(rules []any, by *role, all []role, selector labels.Selector) ([]any, error) {
	for i := range all {
		from := &all[i]
		if from.Name == by.Name || !selector.Matches(from.Labels) {
			continue
		}
		given, err := rulesOf(from)
		if err != nil {
			return nil, err
		}
		for _, rule := range given {
			if !slices.ContainsFunc(rules, func(has any) bool { return object.Equal(has, rule) }) {
				rules = append(rules, rule)
			}
		}
	}
	return rules, nil
}
