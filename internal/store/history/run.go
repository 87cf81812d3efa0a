package history

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

// A version is the state of a key from a revision on.
type version struct {
	revision int64
	kind     kind
	time     int64  // of the change, in milliseconds; 0 for a first one
	note     []byte // of the change
	data     []byte // see run
}

// A kind is the kind of a version.
type kind byte

const (
	changed kind = iota // the value that a change gave
	deleted             // none, after a deletion
	first               // the value before the first kept change
)

// A run is consecutive versions of a key, the newest one first. The newest one with a value has it in data,
// and each older one has its difference from the next newer one.
type run struct{ versions []version }

// Limits of a run. A version beyond them begins another run.
const (
	maxVersions = 64
	maxThinned  = 1024     // of a key with an interval
	maxRun      = 64 << 10 // or three times the newest value
)

// full reports whether the next version begins another run, of at most a number of versions.
func (r *run) full(most int) bool {
	size, newest := 0, 0
	for i, v := range r.versions {
		size += len(v.data) + len(v.note)
		if i == r.whole() {
			newest = len(v.data)
		}
	}
	return len(r.versions) >= most || size > max(maxRun, 3*newest)
}

// whole returns the index of the newest version with a value, or -1.
func (r *run) whole() int {
	for i, v := range r.versions {
		if v.kind != deleted {
			return i
		}
	}
	return -1
}

// present returns the version with the present value, nil if there is none.
func (r *run) present() *version {
	if len(r.versions) == 0 || r.newest().kind == deleted {
		return nil
	}
	v := *r.newest()
	return &v
}

// newest returns the newest version.
func (r *run) newest() *version { return &r.versions[0] }

// oldest returns the revision of the oldest version.
func (r *run) oldest() int64 { return r.versions[len(r.versions)-1].revision }

// add adds a newer version, whose data is its value.
func (r *run) add(v version) {
	if whole := r.whole(); whole >= 0 && v.kind != deleted {
		older := &r.versions[whole]
		older.data = appendDelta(nil, v.data, older.data)
	}
	r.versions = append([]version{v}, r.versions...)
}

// thin removes the updates that are followed by another update in the same interval, in milliseconds, if the later one is not after a
// revision. needed reports whether a caller needs a state from a revision on, before another one. The oldest version stays.
func (r *run) thin(interval, until int64, needed func(from, before int64) bool) error {
	for i := len(r.versions) - 2; i > 0; i-- {
		newer, v, older := &r.versions[i-1], &r.versions[i], &r.versions[i+1]
		if newer.kind != changed || v.kind != changed || older.kind == deleted || newer.time/interval != v.time/interval ||
			newer.revision > until || needed(v.revision, newer.revision) {
			continue
		}
		base, err := r.value(i - 1)
		if err != nil {
			return err
		}
		value, err := r.value(i + 1)
		if err != nil {
			return err
		}
		older.data = appendDelta(nil, base, value)
		r.versions = slices.Delete(r.versions, i, i+1)
	}
	return nil
}

// at returns the index of the version at a revision, or -1.
func (r *run) at(revision int64) int {
	for i := range r.versions {
		if r.versions[i].revision <= revision {
			return i
		}
	}
	return -1
}

// value returns the value of a version, nil if it has none.
func (r *run) value(i int) ([]byte, error) {
	if r.versions[i].kind == deleted {
		return nil, nil
	}
	at := r.whole()
	value := r.versions[at].data
	for at++; at <= i; at++ {
		if r.versions[at].kind == deleted {
			continue
		}
		var err error
		if value, err = applyDelta(value, r.versions[at].data); err != nil {
			return nil, err
		}
	}
	if value == nil {
		value = []byte{}
	}
	return value, nil
}

// encode returns the run as bytes.
func (r *run) encode() []byte {
	out := binary.AppendUvarint(nil, uint64(len(r.versions)))
	var revision, at int64
	for _, v := range r.versions {
		out = binary.AppendVarint(out, v.revision-revision)
		out = binary.AppendVarint(out, v.time-at)
		revision, at = v.revision, v.time
		out = append(out, byte(v.kind))
		out = appendBytes(out, v.note)
		out = appendBytes(out, v.data)
	}
	return out
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(b))), b...)
}

// decodeRun reverses encode. It shares the bytes.
func decodeRun(data []byte) (*run, error) {
	in := reader{rest: data}
	r := &run{versions: make([]version, in.length(len(data)))}
	var revision, at int64
	for i := range r.versions {
		revision += in.varint()
		at += in.varint()
		v := version{revision: revision, time: at, kind: kind(in.byte())}
		v.note, v.data = in.bytes(math.MaxInt32), in.bytes(math.MaxInt32)
		if i > 0 && v.revision >= r.versions[i-1].revision || v.kind > first {
			in.fail()
		}
		r.versions[i] = v
	}
	if in.err != nil || len(in.rest) > 0 || len(r.versions) == 0 {
		return nil, errDelta
	}
	return r, nil
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// when returns the time of a change.
func (v *version) when() time.Time { return time.UnixMilli(v.time).UTC() }

// Bytes in the file have a checksum, of the bytes and of the key that they are stored under.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(key, data []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, data)
}

// summed returns bytes with their checksum.
func summed(key, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(data)), sum(key, data)), data...)
}

// unsummed returns the bytes after a checksum, and whether it is theirs.
func unsummed(key, data []byte) ([]byte, bool) {
	if len(data) < 4 || binary.BigEndian.Uint32(data) != sum(key, data[4:]) {
		return nil, false
	}
	return data[4:], true
}

// A packer compresses bytes. Its memory is large, so a transaction has one.
type packer struct {
	w   *flate.Writer
	out bytes.Buffer
}

func (p *packer) pack(data []byte) ([]byte, error) {
	p.out.Reset()
	if p.w == nil {
		var err error
		if p.w, err = flate.NewWriter(&p.out, flate.DefaultCompression); err != nil {
			return nil, err
		}
	} else {
		p.w.Reset(&p.out)
	}
	if _, err := p.w.Write(data); err != nil {
		return nil, err
	}
	if err := p.w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(p.out.Bytes()), nil
}

var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// maxUnpacked limits the bytes of a run, so that a damaged one takes no more memory.
const maxUnpacked = 1 << 30

func unpack(data []byte) ([]byte, error) {
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(data), nil); err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("it cannot be unpacked: %w", err)
	}
	return out, nil
}
