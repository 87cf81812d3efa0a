package resource

import "testing"

// A value is computed once while its Definition is served.
func TestPerVersion(t *testing.T) {
	one := New(Definition{Plural: "ones", Versions: []*Version{{Name: "v1", Served: true, Storage: true}, {Name: "v2", Served: true}}})
	other := New(Definition{Plural: "others", Versions: []*Version{{Name: "v1", Served: true, Storage: true}}})
	var p PerVersion[int]
	made := 0
	get := func(d *Definition, v *Version) int {
		return p.Get(d, v, func(*Definition, *Version) int { made++; return made })
	}
	for range 2 {
		if a, b, c := get(one, one.Versions[0]), get(one, one.Versions[1]), get(other, other.Versions[0]); a != 1 || b != 2 || c != 3 {
			t.Fatalf("got %d, %d and %d", a, b, c)
		}
	}
	changed := one.Continue(func(*Definition) {})
	p.Retain(NewSet([]*Definition{changed, other}))
	if p.Len() != 1 || get(other, other.Versions[0]) != 3 {
		t.Errorf("%d are kept, want that of the Definition that is still served", p.Len())
	}
}
