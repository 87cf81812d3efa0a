package fork

import (
	"cmp"
	"context"
	"slices"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/offline/history"
)

// Manager is the field manager of a merge.
const Manager = "anykind-merge"

// Merge plans the changes of a fork in the server: the steps that write, in their order, and those with
// conflicts. left are the changed objects that are left out, because a controller makes or removes them.
func (c Client) Merge(ctx context.Context, name string, force bool) (steps []*history.Step, left []string, err error) {
	all, err := c.changes(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range all { // its finalizers are the work of programs of the server
		if d.Type != history.Added && d.Type != history.Deleted && object.Deleting(d.Change.Object) && !object.Deleting(d.Before) {
			d.Type = history.Deleted
		}
	}
	gone := deletedOwners(all)
	ordered(all)
	into, uids := history.Client{Server: c.Server, Manager: Manager}, history.Uids{}
	for _, changed := range all {
		if derived(changed) || changed.Type == history.Deleted && gone.has(changed) {
			left = append(left, changed.Title())
			continue
		}
		if changed.Type == history.Added {
			changed.Change.Object = fresh(changed)
		}
		step, err := into.Brings(ctx, changed.Object, changed.Change, uids, force)
		if err != nil {
			return nil, nil, err
		}
		if step.Action() != "" || len(step.Conflicts) > 0 {
			steps = append(steps, step)
		}
	}
	return steps, left, nil
}

// ordered sorts changes by rank, and then owners before the objects that they own: objects are created after
// their owners, and deleted before them.
func ordered(all []*change) {
	by, depths := map[string]*change{}, map[string]int{}
	for _, c := range all {
		by[object.UID(c.State())] = c
	}
	for _, c := range all {
		depth(c, by, depths)
	}
	order.Stable(all, func(a, b *change) int {
		order := cmp.Compare(depths[object.UID(a.State())], depths[object.UID(b.State())])
		if a.Type == history.Deleted {
			order = -order
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), order)
	})
}

// depth returns the number of changed owners above an object.
func depth(c *change, by map[string]*change, depths map[string]int) int {
	uid := object.UID(c.State())
	if known, ok := depths[uid]; ok {
		return known
	}
	depths[uid] = 0 // ends a circle
	for _, owner := range object.AccessorOf(c.State()).GetOwnerReferences() {
		if changed := by[string(owner.UID)]; changed != nil {
			depths[uid] = max(depths[uid], depth(changed, by, depths)+1)
		}
	}
	return depths[uid]
}

// rank orders changes: definitions and namespaces come before their objects, and go after them.
func rank(c *change) int {
	n := 2
	switch c.GroupResource().String() {
	case history.Definitions:
		n = 0
	case "namespaces":
		n = 1
	}
	if c.Type == history.Deleted {
		return 5 - n
	}
	return n
}

// owners are the namespaces and the definitions that a fork deletes.
type owners map[string]bool

func deletedOwners(all []*change) owners {
	gone := owners{}
	for _, c := range all {
		if c.Type == history.Deleted && (c.GroupResource().String() == "namespaces" || c.GroupResource().String() == history.Definitions) {
			gone[c.GroupResource().String()+"/"+c.Name] = true
		}
	}
	return gone
}

// has reports whether the deletion of another object deletes an object.
func (o owners) has(c *change) bool {
	return o["namespaces/"+c.Namespace] || o[history.Definitions+"/"+c.Resource+"."+c.Group]
}

// derived reports whether controllers make an object, or the server does.
func derived(c *change) bool {
	state := c.State()
	switch c.GroupResource().String() {
	case "events", "events.events.k8s.io", "leases.coordination.k8s.io", "ipaddresses.networking.k8s.io", "endpointslices.discovery.k8s.io", "endpoints":
		return true
	case "configmaps":
		return c.Name == "kube-root-ca.crt"
	case "serviceaccounts":
		return c.Name == "default" && c.Type == history.Added
	case "secrets":
		return state["type"] == "kubernetes.io/service-account-token"
	case "apiservices.apiregistration.k8s.io":
		labels, _ := object.Metadata(state)["labels"].(object.Tree)
		return labels["kube-aggregator.kubernetes.io/automanaged"] != nil
	}
	references, _ := object.Metadata(state)["ownerReferences"].([]any)
	return slices.ContainsFunc(references, func(r any) bool {
		reference, _ := r.(object.Tree)
		return reference["controller"] == true
	})
}

// fresh returns a new object without the values that the server of the fork has allocated.
func fresh(c *change) object.Tree {
	if c.GroupResource().String() != "services" {
		return c.Change.Object
	}
	o := object.CloneTree(c.Change.Object)
	spec, _ := o["spec"].(object.Tree)
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(object.Tree); ok {
			delete(port, "nodePort")
		}
	}
	return o
}
