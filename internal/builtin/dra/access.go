package dra

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/request"
)

// An access checks fine-grained permissions for the status of a claim. Besides the permission for
// the status itself, allocating devices, as schedulers do, needs one permission, and the status of
// devices needs one for each driver.
type access struct{ authorizer authz.Authorizer }

// validate rejects changes without permission. Writes without a request, such as those of a
// controller, need none.
func (a access) validate(c *rule.Check, claim, old *resourcev1.ResourceClaim) {
	q := request.From(c)
	if q == nil || q.User == nil {
		return
	}
	now, before := &claim.Status, &old.Status
	if !equality.Semantic.DeepEqual(now.Allocation, before.Allocation) || !equality.Semantic.DeepEqual(now.ReservedFor, before.ReservedFor) {
		if err := a.may(c, q, resourcev1.SubresourceBinding, q.Info.Verb, "", ""); err != nil {
			c.At("status", "allocation").Forbidden(fmt.Sprintf(
				`changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission: %v`, q.Info.Verb, err))
		}
	}
	if now.Allocation == nil { // the old allocation counts
		return
	}
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + q.Info.Verb}
	if isOnNode(q.User, nodeOf(now.Allocation)) {
		verbs = slices.Insert(verbs, 0, resourcev1.VerbPrefixAssociatedNode+q.Info.Verb)
	}
	for _, driver := range changedDrivers(now.Devices, before.Devices) {
		var first error
		allowed := slices.ContainsFunc(verbs, func(verb string) bool {
			err := a.may(c, q, resourcev1.SubresourceDriver, verb, q.Info.Namespace, driver)
			if first == nil {
				first = err
			}
			return err == nil
		})
		if !allowed {
			c.At("status", "devices").Forbidden(fmt.Sprintf(
				`changing status.devices requires resource="resourceclaims/driver", verb="%s" permission: %v`, verbs, first))
		}
	}
}

// may returns an error if a user lacks a permission for a synthetic subresource.
func (a access) may(c *rule.Check, q *request.Request, subresource, verb, namespace, name string) error {
	what := authz.Attributes{User: q.User, Info: q.Info}
	what.Subresource, what.Verb, what.Namespace, what.Name = subresource, verb, namespace, name
	if err := authz.Require(c, a.authorizer, &what); err != nil {
		return errors.New(err.Error()) // no status of its own
	}
	return nil
}

// nodeOf returns the only node with the devices of a claim, or "".
func nodeOf(a *resourcev1.AllocationResult) string {
	if a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return ""
	}
	f := term.MatchFields[0]
	if f.Key != "metadata.name" || f.Operator != corev1.NodeSelectorOpIn || len(f.Values) != 1 {
		return ""
	}
	return f.Values[0]
}

// isOnNode reports whether a user is a service account on a node, by its token.
func isOnNode(u *request.User, node string) bool {
	_, _, err := request.SplitServiceAccount(u.Name)
	nodes := u.Extra[request.NodeName]
	return node != "" && err == nil && len(nodes) == 1 && nodes[0] == node
}

// changedDrivers returns the drivers with a changed device status, sorted.
func changedDrivers(now, before []resourcev1.AllocatedDeviceStatus) []string {
	nameOf := func(d *resourcev1.AllocatedDeviceStatus) deviceName {
		name := deviceName{Driver: d.Driver, Pool: d.Pool, Device: d.Device}
		if d.ShareID != nil {
			name.ShareID = *d.ShareID
		}
		return name
	}
	changed, old := map[string]bool{}, map[deviceName]*resourcev1.AllocatedDeviceStatus{}
	for i := range before {
		old[nameOf(&before[i])] = &before[i]
	}
	for i := range now {
		name := nameOf(&now[i])
		if was := old[name]; was == nil || !equality.Semantic.DeepEqual(was, &now[i]) {
			changed[now[i].Driver] = true
		}
		delete(old, name)
	}
	for name := range old {
		changed[name.Driver] = true
	}
	return slices.Sorted(maps.Keys(changed))
}
