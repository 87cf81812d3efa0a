package boltkv

import (
	"encoding/binary"
	"fmt"

	"github.com/anykind/anykind/internal/kv"
)

// loaded is what a scan of the file finds.
type loaded struct {
	state  state
	index  index
	recent recentSizes
}

// load reads the whole file. That it succeeds proves that every record is there
// and whole: each has a checksum, the revisions after what is swept have no gap,
// every write follows from the one before it, and the number of all records and
// the sum of their checksums are what the last transaction said.
func (f *boltFile) load() (*loaded, error) {
	buckets := map[string][]byte{}
	err := f.walk(f.root, nil, nil, func(where pageID, e element) error {
		if !e.bucket {
			return f.damage(where, fmt.Sprintf("there is something that is not a bucket: %.40q", e.key))
		}
		buckets[string(e.key)] = e.value
		return nil
	})
	if err != nil {
		return nil, err
	}
	meta, records := buckets[string(metaBucket)], buckets[string(recordsBucket)]
	if meta == nil || records == nil || len(buckets) != 2 {
		return nil, f.damage("its root", "it is a bbolt file, but not one of an anykind store")
	}
	l := &loaded{}
	if l.state, err = f.loadState(meta); err != nil {
		return nil, err
	}
	if err := f.loadRecords(l, records); err != nil {
		return nil, err
	}
	return l, nil
}

func (f *boltFile) loadState(bucket []byte) (state, error) {
	values := map[string][]byte{}
	err := f.bucket(bucket, func(_ pageID, e element) error {
		values[string(e.key)] = e.value
		return nil
	})
	if err != nil {
		return state{}, err
	}
	if v := values[string(formatKey)]; len(v) != 4 {
		return state{}, f.damage("the meta bucket", "it does not say which format the file has")
	} else if found := binary.BigEndian.Uint32(v); found > format {
		return state{}, &FormatError{Path: f.path, Format: found, Supported: format}
	}
	s, ok := decodeState(values[string(stateKey)])
	if !ok {
		return state{}, f.damage("the meta bucket", "the state of the store does not match its checksum")
	}
	return s, nil
}

func (f *boltFile) loadRecords(l *loaded, bucket []byte) error {
	found := state{newest: l.state.swept}
	err := f.bucket(bucket, func(where pageID, e element) error {
		if len(e.key) != 8 || e.bucket {
			return f.damage(where, fmt.Sprintf("key %x is not a revision", e.key))
		}
		revision := int64(binary.BigEndian.Uint64(e.key))
		if reason := l.add(revision, e.value, &found); reason != "" {
			return f.damage(fmt.Sprintf("%v, revision %d", where, revision), reason)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found.newest != l.state.newest {
		return f.damage(fmt.Sprintf("revision %d", found.newest+1), fmt.Sprintf("the writes from there to %d are missing", l.state.newest))
	}
	if found.count != l.state.count || found.sum != l.state.sum {
		return f.damage("the records bucket", fmt.Sprintf("it has %d records with sum %x, and should have %d with sum %x",
			found.count, found.sum, l.state.count, l.state.sum))
	}
	return nil
}

// add takes one record, in the order of revisions. The reason says what is wrong
// with it; "" is nothing.
func (l *loaded) add(revision int64, stored []byte, found *state) (reason string) {
	r, reason := parseRecord(revision, stored)
	if reason != "" {
		return reason
	}
	found.added(storedSum(stored))
	l.recent.add(len(stored))
	key := string(r.key)
	newest := l.index.newest(key)
	if revision <= l.state.swept {
		if r.deleted || newest != kv.Absent {
			return "the record should have been compacted"
		}
	} else {
		if found.newest++; revision != found.newest {
			return fmt.Sprintf("the writes from %d on are missing", found.newest)
		}
		if newest != r.prev || (r.deleted && r.prev == kv.Absent) {
			return fmt.Sprintf("it replaced what was written at %d, but the key is at %d", r.prev, newest)
		}
	}
	l.index.add(key, newVersion(revision, r.deleted))
	return ""
}
