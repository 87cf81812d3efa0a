package peer

import (
	"maps"
	"reflect"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	utilsort "k8s.io/apimachinery/pkg/util/sort"
)

// Merge merges the groups of this server and of its peers. All servers merge in the same order, that
// of their ids, so that they have the same result. The order of groups, versions and resources
// agrees with that of each server as far as these agree.
func (g *Groups) Merge(local []apidiscoveryv2.APIGroupDiscovery) []apidiscoveryv2.APIGroupDiscovery {
	all := map[string][]apidiscoveryv2.APIGroupDiscovery{g.self: local}
	maps.Copy(all, g.servers)
	var lists [][]apidiscoveryv2.APIGroupDiscovery
	for _, id := range slices.Sorted(maps.Keys(all)) {
		lists = append(lists, all[id])
	}
	return merge(func(g *apidiscoveryv2.APIGroupDiscovery) string { return g.Name }, mergeGroup, lists...)
}

// merge merges lists of items. both merges two items of one name.
func merge[T any](name func(*T) string, both func(a, b T) T, lists ...[]T) []T {
	items, orders := map[string]T{}, make([][]string, 0, len(lists))
	for _, list := range lists {
		var order []string
		for i := range list {
			n := name(&list[i])
			order = append(order, n)
			if known, ok := items[n]; ok {
				items[n] = both(known, list[i])
			} else {
				items[n] = list[i]
			}
		}
		orders = append(orders, order)
	}
	var merged []T
	for _, n := range utilsort.MergePreservingRelativeOrder(orders) {
		merged = append(merged, items[n])
	}
	return merged
}

func mergeGroup(a, b apidiscoveryv2.APIGroupDiscovery) apidiscoveryv2.APIGroupDiscovery {
	a.Versions = merge(func(v *apidiscoveryv2.APIVersionDiscovery) string { return v.Version }, mergeVersion, a.Versions, b.Versions)
	return a
}

func mergeVersion(a, b apidiscoveryv2.APIVersionDiscovery) apidiscoveryv2.APIVersionDiscovery {
	a.Resources = merge(func(r *apidiscoveryv2.APIResourceDiscovery) string { return r.Resource }, mergeResource, a.Resources, b.Resources)
	return a
}

// mergeResource returns a with the verbs and subresources of both.
func mergeResource(a, b apidiscoveryv2.APIResourceDiscovery) apidiscoveryv2.APIResourceDiscovery {
	if reflect.DeepEqual(a, b) {
		return a
	}
	verbs := slices.Concat(a.Verbs, b.Verbs)
	slices.Sort(verbs)
	subresources := map[string]apidiscoveryv2.APISubresourceDiscovery{}
	for _, s := range slices.Concat(a.Subresources, b.Subresources) {
		subresources[s.Subresource] = s
	}
	a.Verbs, a.Subresources = slices.Compact(verbs), nil
	for _, name := range slices.Sorted(maps.Keys(subresources)) {
		a.Subresources = append(a.Subresources, subresources[name])
	}
	return a
}
