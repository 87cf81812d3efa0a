package boltkv

import (
	"encoding/binary"
	"fmt"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// loaded is the result of a scan of the file and of its journal.
type loaded struct {
	meta
	index   index
	recent  recentSizes
	noted   bool       // a record has a note
	events  []kv.Event // that only the journal has, without previous values
	pending int64      // size of their records
}

// A meta is the description that a file has of itself.
type meta struct {
	state  state
	mark   uint64 // the nonce of the journal that continues it; 0 for none
	format uint32
}

// load reads the whole file, and the journal that continues it. Its success proves that every record is present and complete, by the
// checks of scan, and that every write follows from the one before it.
func load(f *boltfile.File) (*loaded, error) {
	l := &loaded{}
	var err error
	if l.meta, err = scan(f, l.add); err != nil || l.mark == 0 {
		return l, err
	}
	return l, readJournal(f.Name(), l.mark, l.state.newest, l.addLate)
}

// addLate processes a record of the journal.
func (l *loaded) addLate(r stored) (reason string) {
	e := kv.Event{Key: string(r.key), Revision: r.revision, PrevRevision: r.prev, Note: r.note}
	if !r.deleted {
		e.Value = r.value
	}
	l.events = append(l.events, e)
	l.pending += int64(r.size)
	return l.add(r)
}

// A stored record, as scan finds it.
type stored struct {
	record
	revision int64
	size     int
	swept    int64 // up to here, there are no records but of current values
}

// scan reads all records in the order of their revisions. Its success proves that each record has a
// valid checksum, that the revisions after the swept ones have no gap, and that the number of records
// and the sum of their checksums match the last transaction. see returns the defect of a record; "" is
// none.
func scan(f *boltfile.File, see func(stored) (reason string)) (m meta, err error) {
	buckets := map[string][]byte{}
	err = f.Buckets(func(where boltfile.PageID, e boltfile.Element) error {
		if !e.Bucket {
			return f.Damage(where, fmt.Sprintf("there is something that is not a bucket: %.40q", e.Key))
		}
		buckets[string(e.Key)] = e.Value
		return nil
	})
	if err != nil {
		return meta{}, err
	}
	described, records := buckets[string(metaBucket)], buckets[string(recordsBucket)]
	if described == nil || records == nil || len(buckets) != 2 {
		return meta{}, f.Damage("its root", "it is a bbolt file, but not one of an anykind store")
	}
	if m, err = scanMeta(f, described); err != nil {
		return meta{}, err
	}
	return m, scanRecords(f, records, m.state, see)
}

func scanMeta(f *boltfile.File, bucket []byte) (m meta, err error) {
	values := map[string][]byte{}
	err = f.Walk(bucket, func(_ boltfile.PageID, e boltfile.Element) error {
		values[string(e.Key)] = e.Value
		return nil
	})
	if err != nil {
		return meta{}, err
	}
	if v := values[string(formatKey)]; len(v) != 4 {
		return meta{}, f.Damage("the meta bucket", "it does not say which format the file has")
	} else if m.format = binary.BigEndian.Uint32(v); m.format > formatWithJournal {
		return meta{}, &FormatError{Path: f.Name(), Format: m.format, Supported: formatWithJournal}
	}
	var ok bool
	if m.state, ok = decodeState(values[string(stateKey)]); !ok {
		return meta{}, f.Damage("the meta bucket", "the state of the store does not match its checksum")
	}
	if mark := values[string(markKey)]; len(mark) == 8 {
		m.mark = binary.BigEndian.Uint64(mark)
	}
	if (m.mark != 0) != (m.format == formatWithJournal) {
		return meta{}, f.Damage("the meta bucket", "the mark of its journal does not match its format")
	}
	return m, nil
}

func scanRecords(f *boltfile.File, bucket []byte, s state, see func(stored) string) error {
	found := state{newest: s.swept}
	err := f.Walk(bucket, func(where boltfile.PageID, e boltfile.Element) error {
		if len(e.Key) != 8 || e.Bucket {
			return f.Damage(where, fmt.Sprintf("key %x is not a revision", e.Key))
		}
		revision := int64(binary.BigEndian.Uint64(e.Key))
		r, reason := parseRecord(revision, e.Value)
		if reason == "" {
			found.added(storedSum(e.Value))
			reason = found.follow(revision, s.swept)
		}
		if reason == "" {
			reason = see(stored{r, revision, len(e.Value), s.swept})
		}
		if reason != "" {
			return f.Damage(fmt.Sprintf("%v, revision %d", where, revision), reason)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found.newest != s.newest {
		return f.Damage(fmt.Sprintf("revision %d", found.newest+1), fmt.Sprintf("the writes from there to %d are missing", s.newest))
	}
	if found.count != s.count || found.sum != s.sum {
		return f.Damage("the records bucket", fmt.Sprintf("it has %d records with sum %x, and should have %d with sum %x",
			found.count, found.sum, s.count, s.sum))
	}
	return nil
}

// follow advances to the next revision. There is no gap after the swept revisions.
func (s *state) follow(revision, swept int64) (reason string) {
	if revision <= swept {
		return ""
	}
	if s.newest++; revision != s.newest {
		return fmt.Sprintf("the writes from %d on are missing", s.newest)
	}
	return ""
}

// add processes one record, in the order of revisions.
func (l *loaded) add(r stored) (reason string) {
	l.recent.add(r.size)
	l.noted = l.noted || r.note != nil
	key := string(r.key)
	newest := l.index.newest(key)
	if r.revision <= r.swept {
		if r.deleted || newest != kv.Absent {
			return "the record should have been compacted"
		}
	} else if newest != r.prev || (r.deleted && r.prev == kv.Absent) {
		return fmt.Sprintf("it replaced what was written at %d, but the key is at %d", r.prev, newest)
	}
	l.index.add(key, newVersion(r.revision, r.deleted))
	return ""
}
