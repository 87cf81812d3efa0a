package history

import (
	"encoding/binary"
	"iter"

	bolt "go.etcd.io/bbolt"
)

// A block of the log has events in order. It is stored under the revision of its first event.

// maxBlock is the number of events of a block.
const maxBlock = 256

// An entry is an event in the log.
type entry struct {
	revision int64
	id       int64
	time     int64
}

// logEvents appends events to the log.
func (w *writing) logEvents(events []event) error {
	for len(events) > 0 {
		// Events of one revision are in one block.
		n := min(len(events), maxBlock)
		for n < len(events) && events[n].Revision == events[n-1].Revision {
			n++
		}
		out := binary.AppendUvarint(nil, uint64(n))
		revision, at := events[0].Revision, int64(0)
		for i := range events[:n] {
			e := &events[i]
			out = binary.AppendUvarint(out, uint64(e.Revision-revision))
			out = binary.AppendUvarint(out, binary.BigEndian.Uint64(w.open[e.Key].id))
			out = binary.AppendVarint(out, e.time-at)
			revision, at = e.Revision, e.time
		}
		data, err := w.packer.pack(out)
		if err != nil {
			return err
		}
		k := number(events[0].Revision)
		if err := w.log.Put(k, summed(k, data)); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// block returns the entries of a block.
func (r *reading) block(k, v []byte) ([]entry, error) {
	body, ok := unsummed(k, v)
	if !ok {
		return nil, r.damage(firstOf(k), "the log of the history does not match its checksum")
	}
	data, err := unpack(body)
	if err != nil {
		return nil, r.damage(firstOf(k), err.Error())
	}
	in := reader{rest: data}
	entries := make([]entry, in.length(len(data)))
	revision, at := firstOf(k), int64(0)
	for i := range entries {
		revision += int64(in.uvarint())
		id := int64(in.uvarint())
		at += in.varint()
		entries[i] = entry{revision, id, at}
	}
	if in.err != nil || len(entries) == 0 {
		return nil, r.damage(firstOf(k), "the log of the history makes no sense")
	}
	return entries, nil
}

// seekBlock moves a cursor to the block that has a revision, or to the next one after it.
func seekBlock(c *bolt.Cursor, revision int64) (k, v []byte) {
	if k, v = before(c, number(revision+1)); k == nil {
		return c.First()
	}
	return k, v
}

// entries yields the entries after a revision.
func (r *reading) entries(after int64) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		c := r.log.Cursor()
		for k, v := seekBlock(c, after+1); k != nil; k, v = c.Next() {
			block, err := r.block(k, v)
			if err != nil {
				yield(entry{}, err)
				return
			}
			for _, e := range block {
				if e.revision > after && !yield(e, nil) {
					return
				}
			}
		}
	}
}
