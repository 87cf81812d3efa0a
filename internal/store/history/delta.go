package history

import (
	"encoding/binary"
	"errors"
)

// A difference describes the bytes of one value by those of another one, its base:
//
//	length of the value
//	any number of: length of an insertion, its bytes, offset of a copy from the end of the last copy, its length
//
// Numbers are varints, and the offset is signed.

// block is the number of bytes that a copy has at least. Blocks of the base are found by their bytes.
const block = 16

// appendDelta appends the difference of value from base.
func appendDelta(to, base, value []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(value)))
	d := delta{out: to, base: base, value: value}
	head := common(base, value)
	tail := commonEnd(base[head:], value[head:])
	d.copy(0, 0, head)
	d.middle(head, len(value)-tail, blocksOf(base[head:len(base)-tail], head))
	d.copy(len(base)-tail, len(value)-tail, tail)
	d.insert(len(value))
	return d.out
}

// A delta is a difference that is being written.
type delta struct {
	out         []byte
	base, value []byte
	written     int // of value
	copied      int // the end of the last copy in base
}

// blocksOf returns the places of blocks of bytes that begin at an offset of the base.
func blocksOf(bytes []byte, offset int) map[[block]byte]int {
	places := make(map[[block]byte]int, len(bytes)/block)
	for i := 0; i+block <= len(bytes); i += block {
		places[[block]byte(bytes[i:])] = offset + i
	}
	return places
}

// middle describes value[from:to] by copies of blocks. It extends each copy in both directions.
func (d *delta) middle(from, to int, places map[[block]byte]int) {
	for at := from; at+block <= to; {
		place, ok := places[[block]byte(d.value[at:])]
		if !ok {
			at++
			continue
		}
		length := block + common(d.base[place+block:], d.value[at+block:to])
		back := commonEnd(d.base[:place], d.value[max(d.written, from):at])
		d.copy(place-back, at-back, length+back)
		at += length
	}
}

// copy adds a copy of bytes of the base that are at a place of the value.
func (d *delta) copy(place, at, length int) {
	if length < block && at+length < len(d.value) || length == 0 {
		return
	}
	d.insertion(at)
	d.out = binary.AppendVarint(d.out, int64(place-d.copied))
	d.out = binary.AppendUvarint(d.out, uint64(length))
	d.written, d.copied = at+length, place+length
}

// insertion adds the bytes up to a place of the value.
func (d *delta) insertion(to int) {
	d.out = binary.AppendUvarint(d.out, uint64(to-d.written))
	d.out = append(d.out, d.value[d.written:to]...)
	d.written = to
}

// insert adds the rest of the value, without a copy after it.
func (d *delta) insert(to int) {
	if to > d.written {
		d.insertion(to)
	}
}

var errDelta = errors.New("a difference makes no sense")

// applyDelta returns the value that differs from base by delta.
func applyDelta(base, delta []byte) ([]byte, error) {
	r := reader{rest: delta}
	length := r.length(1 << 31)
	value := make([]byte, 0, min(length, len(base)+len(delta)))
	place := 0
	for r.err == nil && len(value) < length {
		value = append(value, r.bytes(length-len(value))...)
		if len(r.rest) == 0 {
			break
		}
		place += int(r.varint())
		n := r.length(length - len(value))
		if r.err != nil || place < 0 || place > len(base) || n > len(base)-place {
			return nil, errDelta
		}
		value = append(value, base[place:place+n]...)
		place += n
	}
	if r.err != nil || len(r.rest) > 0 || len(value) != length {
		return nil, errDelta
	}
	return value, nil
}

// common returns the length of the common beginning.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// commonEnd returns the length of the common end.
func commonEnd(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}

// A reader reads numbers and bytes. After an error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail() { r.rest, r.err = nil, errDelta }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// length reads a number up to a limit.
func (r *reader) length(limit int) int {
	v := r.uvarint()
	if v > uint64(limit) {
		r.fail()
		return 0
	}
	return int(v)
}

// bytes reads up to a limit of bytes, after their number. It shares them.
func (r *reader) bytes(limit int) []byte {
	n := r.length(min(limit, len(r.rest)))
	if r.err != nil || n > len(r.rest) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}
