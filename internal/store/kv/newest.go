package kv

import (
	"cmp"
	"slices"
)

// Newest collects the changes of a log, oldest first, into the newest value of each key.
type Newest struct {
	at      map[string]int // in records
	records []Record
	removed int
}

// Add adds a change. It copies the key and shares the value.
func (n *Newest) Add(key, value []byte, revision int64, deleted bool) {
	if n.at == nil {
		n.at = map[string]int{}
	}
	i, known := n.at[string(key)]
	if deleted {
		if known {
			delete(n.at, string(key))
			n.records[i].Key = ""
			n.removed++
		}
		return
	}
	if value == nil {
		value = []byte{}
	}
	if known {
		n.records[i].Value, n.records[i].Revision = value, revision
		return
	}
	name := string(key)
	n.at[name] = len(n.records)
	n.records = append(n.records, Record{Key: name, Value: value, Revision: revision})
}

// Records returns the newest values in the order of their revisions. The Newest must not be used
// afterwards.
func (n *Newest) Records() []Record {
	if n.removed > 0 {
		n.records = slices.DeleteFunc(n.records, func(r Record) bool { return r.Key == "" })
	}
	slices.SortStableFunc(n.records, func(a, b Record) int { return cmp.Compare(a.Revision, b.Revision) })
	return n.records
}

// A Mapping has the content of a file at its newest revision. The values are in the mapped file, which stays
// mapped until the process ends.
type Mapping struct {
	Records  []Record // in the order of their revisions
	Revision int64
	// Release lets other processes write to the file. The values must not be used afterwards.
	Release func()
}
