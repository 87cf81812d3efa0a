package storageversion

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/former"
	"github.com/anykind/anykind/internal/object/resource"
)

// A record has the storage versions of objects with a key prefix, and the resources that serve them.
type record struct {
	resources []schema.GroupResource
	encoding  string
	decodable []string
	served    []string // of the first resource
}

// name returns the name of the StorageVersion.
func (r *record) name() string {
	of := r.resources[0]
	return cmp.Or(of.Group, "core") + "." + of.Resource
}

// recordsOf returns the records of the built-in kinds that are stored, in order of their names. Resources of several
// groups with the same objects, such as Events, share a record.
func recordsOf(set *resource.Set) (records []*record) {
	byPrefix := map[string][]*resource.Definition{}
	for _, group := range set.Groups() {
		for _, d := range group.Definitions {
			if d.UID == "" && !d.Encoding().Empty() {
				byPrefix[d.StoragePrefix] = append(byPrefix[d.StoragePrefix], d)
			}
		}
	}
	for _, equivalent := range byPrefix {
		slices.SortFunc(equivalent, func(a, b *resource.Definition) int {
			return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural))
		})
		records = append(records, recordOf(equivalent))
	}
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.name(), b.name()) })
	return records
}

// recordOf returns the record of definitions with the same objects.
func recordOf(equivalent []*resource.Definition) *record {
	first := equivalent[0]
	r := &record{encoding: first.Encoding().GroupVersion().String(), served: servedBy(first)}
	for _, v := range first.Versions {
		r.decodable = append(r.decodable, first.APIVersion(v.Name))
	}
	for _, removed := range former.Versions(first.Group, first.Kind) {
		r.decodable = append(r.decodable, first.APIVersion(removed))
	}
	also := []string{r.encoding}
	for _, d := range equivalent {
		r.resources = append(r.resources, d.GroupResource())
		also = append(also, servedBy(d)...)
	}
	for _, version := range also {
		if !slices.Contains(r.decodable, version) {
			r.decodable = append(r.decodable, version)
		}
	}
	return r
}

// servedBy returns the served versions of a definition.
func servedBy(d *resource.Definition) (versions []string) {
	for _, v := range d.Versions {
		if v.Served {
			versions = append(versions, d.APIVersion(v.Name))
		}
	}
	return versions
}
