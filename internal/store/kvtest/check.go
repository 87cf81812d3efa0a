package kvtest

import (
	"iter"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// CheckWatch passes a watch through and reports to fail each breach of the contract that is detectable
// without knowledge of the writes: events out of order, of other keys, beyond their batch; progress
// that does not grow; an error that is not last.
func CheckWatch(fail func(format string, args ...any), prefix string, after int64, watch iter.Seq2[kv.Batch, error]) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		started, ended := false, false
		seen := after
		for batch, err := range watch {
			if ended {
				fail("a watch went on after an error")
			}
			if err != nil {
				ended = true
				if len(batch.Events) != 0 || batch.Revision != 0 {
					fail("error %v came with a batch: %+v", err, batch)
				}
			} else {
				checkBatch(fail, prefix, seen, started, batch)
				seen, started = batch.Revision, true
			}
			if !yield(batch, err) {
				return
			}
		}
		if !ended {
			fail("a watch ended without an error")
		}
	}
}

func checkBatch(fail func(string, ...any), prefix string, seen int64, started bool, batch kv.Batch) {
	if batch.Revision < seen || (started && batch.Revision == seen) {
		fail("progress went from %d to %d", seen, batch.Revision)
	}
	last := seen
	var keys []string
	for _, e := range batch.Events {
		switch {
		case !strings.HasPrefix(e.Key, prefix):
			fail("event of key %q in a watch of %q", e.Key, prefix)
		case e.Revision < last, e.Revision == seen, e.Revision > batch.Revision:
			fail("event at %d after %d in a batch up to %d", e.Revision, last, batch.Revision)
		case e.PrevRevision >= e.Revision, e.PrevRevision < 0:
			fail("event at %d says the value before was of %d", e.Revision, e.PrevRevision)
		case (e.Prev == nil) != (e.PrevRevision == kv.Absent):
			fail("event at %d has value %q before, of %d", e.Revision, e.Prev, e.PrevRevision)
		case e.Value == nil && e.Prev == nil:
			fail("event at %d deletes what did not exist", e.Revision)
		}
		if e.Revision != last {
			keys = keys[:0]
		}
		for _, key := range keys {
			if key == e.Key {
				fail("two events of key %q at %d", key, e.Revision)
			}
		}
		keys = append(keys, e.Key)
		last = e.Revision
	}
}
