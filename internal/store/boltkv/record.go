package boltkv

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/anykind/anykind/internal/store/kv"
)

// The file has two buckets. One holds the records, under their revisions as eight bytes in big-endian
// order; the other holds the state, with which the records must agree.
var (
	recordsBucket = []byte("records")
	metaBucket    = []byte("anykind")
	formatKey     = []byte("format")
	stateKey      = []byte("state")
	markKey       = []byte("journal") // only while a journal continues the file
)

// Versions of the file format. A store of a higher version is rejected. A file has the lowest one that
// describes it.
const (
	formatWithoutNotes uint32 = 1
	formatWithNotes    uint32 = 2
	formatWithJournal  uint32 = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A record is one write as it is stored:
//
//	checksum  4 bytes, CRC-32C of the revision and of all that follows
//	kind      1 byte
//	prev      8 bytes, the revision of the value that was replaced, 0 for none
//	length    4 bytes, of the key
//	key
//	note    2 bytes of length and the bytes, in a record with a note
//	value
type record struct {
	key     []byte
	note    []byte // nil for none
	value   []byte // nil if deleted
	prev    int64
	deleted bool
}

const (
	recordHeader = 4 + 1 + 8 + 4

	kindValue   = 1
	kindDeleted = 2
	withNote    = 16 // added to a kind

	maxNote = 1<<16 - 1 // longer notes are cut
)

// recordKey returns the key that the record of a revision is stored under.
func recordKey(revision int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(revision))
}

func recordSize(e *kv.Event) int {
	size := recordHeader + len(e.Key) + len(e.Value)
	if e.Note != nil {
		size += 2 + min(len(e.Note), maxNote)
	}
	return size
}

// appendRecord appends the stored form of a write.
func appendRecord(to []byte, e *kv.Event) []byte {
	start := len(to)
	kind := byte(kindValue)
	if e.Value == nil {
		kind = kindDeleted
	}
	if e.Note != nil {
		kind += withNote
	}
	to = append(to, 0, 0, 0, 0, kind)
	to = binary.BigEndian.AppendUint64(to, uint64(e.PrevRevision))
	to = binary.BigEndian.AppendUint32(to, uint32(len(e.Key)))
	to = append(to, e.Key...)
	if e.Note != nil {
		note := e.Note[:min(len(e.Note), maxNote)]
		to = binary.BigEndian.AppendUint16(to, uint16(len(note)))
		to = append(to, note...)
	}
	to = append(to, e.Value...)
	binary.BigEndian.PutUint32(to[start:], recordSum(e.Revision, to[start:]))
	return to
}

// framedHeader is the size of the length of a record in a frame.
const framedHeader = 4

// appendFramed appends the content of a frame of the journal for a write: length, record. Revisions follow from the first one.
func appendFramed(to []byte, e *kv.Event) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(recordSize(e)))
	return appendRecord(to, e)
}

// recordSum computes the checksum of a stored record.
func recordSum(revision int64, stored []byte) uint32 {
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], uint64(revision))
	return crc32.Update(crc32.Update(0, castagnoli, head[:]), castagnoli, stored[4:])
}

// storedSum returns the checksum that a stored record carries.
func storedSum(stored []byte) uint32 { return binary.BigEndian.Uint32(stored) }

// parseRecord parses a stored record, whose bytes it shares. reason is the defect of a record; "" is
// none.
func parseRecord(revision int64, stored []byte) (r record, reason string) {
	if len(stored) < recordHeader {
		return record{}, "the record is too short"
	}
	if recordSum(revision, stored) != storedSum(stored) {
		return record{}, "the checksum does not match"
	}
	kind := stored[4] &^ withNote
	r.deleted = kind == kindDeleted
	r.prev = int64(binary.BigEndian.Uint64(stored[5:]))
	keyLength := int(binary.BigEndian.Uint32(stored[13:]))
	body := stored[recordHeader:]
	if keyLength > len(body) || (kind != kindValue && !r.deleted) || r.prev < 0 || r.prev >= revision {
		return record{}, "the record makes no sense"
	}
	r.key, body = body[:keyLength:keyLength], body[keyLength:]
	if stored[4] != kind {
		if len(body) < 2 || len(body)-2 < int(binary.BigEndian.Uint16(body)) {
			return record{}, "the note of the record makes no sense"
		}
		end := 2 + int(binary.BigEndian.Uint16(body))
		r.note, body = body[2:end:end], body[end:]
	}
	if !r.deleted {
		r.value = body
	}
	return r, ""
}

// A state describes the content of the file. It is written with every transaction, so that a missing
// or a foreign record is detected.
type state struct {
	newest int64  // revision of the newest write, even when that is swept
	oldest int64  // the oldest kept revision
	swept  int64  // data unreachable since the compaction to oldest is removed up to here
	count  int64  // of the records
	sum    uint64 // of their checksums, added up
}

const stateSize = 5*8 + 4

func (s state) encode() []byte {
	b := make([]byte, 0, stateSize)
	for _, n := range []int64{s.newest, s.oldest, s.swept, s.count, int64(s.sum)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeState(b []byte) (state, bool) {
	if len(b) != stateSize || crc32.Checksum(b[:stateSize-4], castagnoli) != binary.BigEndian.Uint32(b[stateSize-4:]) {
		return state{}, false
	}
	n := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	s := state{newest: n(0), oldest: n(1), swept: n(2), count: n(3), sum: uint64(n(4))}
	return s, 1 <= s.swept && s.swept <= s.oldest && s.oldest <= s.newest
}

// added and removed account for one record.
func (s *state) added(sum uint32)   { s.count++; s.sum += uint64(sum) }
func (s *state) removed(sum uint32) { s.count--; s.sum -= uint64(sum) }
