package storageversion

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/anykind/anykind/internal/builtin/former"
	"github.com/anykind/anykind/internal/object/resource"
)

// A record has the storage versions of objects with a key prefix. Resources of several groups with the same objects, such
// as Events, share a record.
type record struct {
	prefix    string // of the keys
	name      string // of the StorageVersion, after the first resource
	resources []string
	encoding  string
	decodable []string
	served    []string // of the first resource

	done   atomic.Bool
	failed atomic.Pointer[error] // the last error
}

// recordsOf returns the records of the built-in kinds that are stored. The core group is the first one.
func recordsOf(set *resource.Set) (records []*record) {
	for _, group := range set.Groups() {
		for _, d := range group.Definitions {
			encoding := resource.EncodingOf(d)
			if d.UID != "" || encoding.Empty() {
				continue
			}
			i := slices.IndexFunc(records, func(r *record) bool { return r.prefix == d.StoragePrefix })
			if i < 0 {
				i = len(records)
				records = append(records, &record{prefix: d.StoragePrefix, name: cmp.Or(d.Group, "core") + "." + d.Plural, encoding: encoding.GroupVersion().String()})
			}
			records[i].add(d)
		}
	}
	return records
}

// add adds a resource.
func (r *record) add(d *resource.Definition) {
	first := len(r.resources) == 0
	r.resources = append(r.resources, resourceOf(d.Group, d.Plural))
	var known []string
	for _, v := range d.Versions {
		version := d.APIVersion(v.Name)
		if v.Served && first {
			r.served = append(r.served, version)
		}
		if v.Served || first {
			known = append(known, version)
		}
	}
	if first {
		known = append(append(known, former.Versions(d.Group, d.Kind)...), r.encoding)
	}
	for _, version := range known {
		if !slices.Contains(r.decodable, version) {
			r.decodable = append(r.decodable, version)
		}
	}
}

// resourceOf returns the name of a resource in messages.
func resourceOf(group, plural string) string {
	if group == "" {
		return plural
	}
	return plural + "." + group
}
