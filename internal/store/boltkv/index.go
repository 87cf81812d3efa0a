package boltkv

import (
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"github.com/anykind/anykind/internal/store/kv"
)

// An index knows at which revisions every key was written, in memory. Most keys have one version, so the earlier
// ones are apart.
type index struct {
	keys  btree.Map[string, version] // the newest of each key
	older map[string][]version       // the others, in order
}

// A version is the revision of a write, and whether it deleted the key.
type version uint64

func newVersion(revision int64, deleted bool) version {
	v := version(revision) << 1
	if deleted {
		v |= 1
	}
	return v
}

func (v version) revision() int64 { return int64(v >> 1) }
func (v version) deleted() bool   { return v&1 != 0 }

// current is the revision of the value, or Absent.
func (v version) current() int64 {
	if v.deleted() {
		return kv.Absent
	}
	return v.revision()
}

// versionAt returns the revision of the value of key at a revision, or Absent. newest is the newest version.
func (x *index) versionAt(key string, newest version, revision int64) int64 {
	if newest.revision() <= revision {
		return newest.current()
	}
	older := x.older[key]
	i := sort.Search(len(older), func(i int) bool { return older[i].revision() > revision })
	if i == 0 {
		return kv.Absent
	}
	return older[i-1].current()
}

// newest returns the revision of the newest value of key, or Absent.
func (x *index) newest(key string) int64 {
	if v, ok := x.keys.Get(key); ok {
		return v.current()
	}
	return kv.Absent
}

// at returns the revision of the value of key at a revision, or Absent.
func (x *index) at(key string, revision int64) int64 {
	if v, ok := x.keys.Get(key); ok {
		return x.versionAt(key, v, revision)
	}
	return kv.Absent
}

// add adds a write that is newer than all others of its key.
func (x *index) add(key string, written version) {
	if before, ok := x.keys.Set(key, written); ok {
		if x.older == nil {
			x.older = map[string][]version{}
		}
		x.older[key] = append(x.older[key], before)
	}
}

// forget drops the versions of key before a revision, and also that one if it
// deleted the key.
func (x *index) forget(key string, revision int64) {
	newest, ok := x.keys.Get(key)
	if !ok {
		return
	}
	older := x.older[key]
	i := sort.Search(len(older), func(i int) bool { return older[i].revision() >= revision })
	if i < len(older) && older[i].deleted() {
		i++
	}
	if i == len(older) {
		delete(x.older, key)
		if newest.deleted() && newest.revision() <= revision {
			x.keys.Delete(key)
		}
		return
	}
	// A copy, so that the memory of the old versions is freed.
	x.older[key] = append([]version(nil), older[i:]...)
}

// list returns the records of a range without their values, and whether there are more.
func (x *index) list(r kv.Range, revision int64) (records []kv.Record, more bool) {
	x.keys.Ascend(max(r.Prefix, r.After), func(key string, v version) bool {
		if !strings.HasPrefix(key, r.Prefix) {
			return false
		}
		at := x.versionAt(key, v, revision)
		if at == kv.Absent || (r.After != "" && key <= r.After) {
			return true
		}
		if r.Limit > 0 && len(records) == r.Limit {
			more = true
			return false
		}
		records = append(records, kv.Record{Key: key, Revision: at})
		return true
	})
	return records, more
}
