package order

import (
	"cmp"
	"slices"
	"testing"
)

func TestStable(t *testing.T) {
	type pair struct{ key, at int }
	list := []pair{{2, 0}, {1, 1}, {2, 2}, {0, 3}, {1, 4}}
	Stable(list, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	if want := []pair{{0, 3}, {1, 1}, {1, 4}, {2, 0}, {2, 2}}; !slices.Equal(list, want) {
		t.Errorf("%v, want %v", list, want)
	}
}
