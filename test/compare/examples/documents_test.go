package examples

import (
	"maps"
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	all, err := Published(folders()...)
	if err != nil {
		t.Fatal(err)
	}
	bySource, byKind := map[string]int{}, map[string]int{}
	for _, d := range all {
		bySource[d.Source]++
		byKind[d.APIVersion+" "+d.Kind]++
	}
	for _, s := range slices.Sorted(maps.Keys(bySource)) {
		t.Logf("%5d %s", bySource[s], s)
	}
	for _, s := range slices.Sorted(maps.Keys(byKind)) {
		t.Logf("    %5d %s", byKind[s], s)
	}
	t.Log(len(all))
}
