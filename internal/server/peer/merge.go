package peer

import (
	"maps"
	"reflect"
	"slices"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// Aggregated discovery is a list of groups at level 0, with lists of versions at level 1 and of
// resources at level 2. A field has the name of an item, and another one the list below.
var nameField, listField = [...]string{"name", "version", "resource"}, [...]string{"versions", "resources", ""}

// nameOf returns the name of an item at a level.
func nameOf(item any, level int) string {
	t, _ := item.(object.Tree)
	if level == 0 {
		t = kind.Tree(t, "metadata")
	}
	return kind.Text(t, nameField[level])
}

// below returns the list below an item at a level.
func below(item any, level int) []any {
	t, _ := item.(object.Tree)
	return kind.List(t, listField[level])
}

// Merge merges the groups of this server and of its peers, the items of aggregated discovery. All
// servers merge in the same order, that of their ids, so that they have the same result.
func (g *Groups) Merge(local []any) []any {
	var lists [][]any
	for i, id := range g.peers {
		if id > g.self && len(lists) == i {
			lists = append(lists, local)
		}
		lists = append(lists, g.lists[i])
	}
	if len(lists) == len(g.peers) {
		lists = append(lists, local)
	}
	return merge(0, lists...)
}

// merge merges the lists of a level. The arguments do not change.
func merge(level int, lists ...[]any) (merged []any) {
	items := map[string]any{}
	orders := make([][]string, len(lists))
	for i, list := range lists {
		for _, item := range list {
			name := nameOf(item, level)
			orders[i] = append(orders[i], name)
			if known := items[name]; known != nil {
				item = mergeItem(level, known, item)
			}
			items[name] = item
		}
	}
	for _, name := range ordered(orders) {
		merged = append(merged, items[name])
	}
	return merged
}

// mergeItem merges two items of one name: everything but the list below, or the verbs and
// subresources, is that of a.
func mergeItem(level int, a, b any) any {
	if reflect.DeepEqual(a, b) {
		return a
	}
	t, _ := a.(object.Tree)
	t = maps.Clone(t)
	if listField[level] != "" {
		put(t, listField[level], merge(level+1, below(a, level), below(b, level)))
		return t
	}
	other, _ := b.(object.Tree)
	for _, field := range []string{"verbs", "subresources"} {
		put(t, field, union(kind.List(t, field), kind.List(other, field)))
	}
	return t
}

// put sets a list that has items.
func put(t object.Tree, field string, list []any) {
	if len(list) > 0 {
		t[field] = list
	}
}

// union returns the sorted verbs or subresources of two lists. Of two with one name, that of b counts.
func union(a, b []any) (all []any) {
	items, names := map[string]any{}, []string(nil)
	for _, item := range append(slices.Clip(a), b...) {
		name, isVerb := item.(string)
		if !isVerb {
			t, _ := item.(object.Tree)
			name = kind.Text(t, "subresource")
		}
		if items[name] == nil {
			names = append(names, name)
		}
		items[name] = item
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, items[name])
	}
	return all
}

// ordered merges lists of names. The result agrees with the order of neighbours in each list, and names
// without such an order are sorted. It is a list with all names, if there is one, and all names
// sorted if the orders contradict each other.
func ordered(lists [][]string) []string {
	after, before := map[string][]string{}, map[string]int{} // names that follow, and the number that precede
	var names []string
	for _, list := range lists {
		for i, name := range list {
			if _, known := before[name]; !known {
				before[name] = 0
				names = append(names, name)
			}
			if i > 0 && !slices.Contains(after[list[i-1]], name) {
				after[list[i-1]] = append(after[list[i-1]], name)
				before[name]++
			}
		}
	}
	for _, list := range lists {
		if len(list) == len(names) {
			return list
		}
	}
	slices.Sort(names)
	merged := make([]string, 0, len(names))
	for len(merged) < len(names) {
		next := slices.IndexFunc(names, func(name string) bool { return before[name] == 0 })
		if next < 0 {
			return names
		}
		merged = append(merged, names[next])
		before[names[next]] = -1 // done
		for _, name := range after[names[next]] {
			before[name]--
		}
	}
	return merged
}
