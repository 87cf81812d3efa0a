// Package journal makes writes durable with one sync each, before a store files them elsewhere.
//
// A journal is two files with frames of bytes. Each frame has the positions of its content, which are
// consecutive numbers over all frames. Append writes a frame and syncs it. The two files are used in turn: when one
// is long enough, the next frame begins the other one from its start, once all that it had is filed. So the disk
// overwrites blocks that it has allocated. That needs no sync of a file system's metadata.
//
// A frame begins at a multiple of Sector, so that a torn write damages no earlier frame. It has a checksum and the nonce of its
// journal. The nonce is random and known to the store only, so neither frames of earlier journals nor bytes of
// users are ever taken for a frame.
//
// Read finds the frames after a crash. A missing frame between others is damage. The last frame may be missing: a crash tore it, and
// then it was never acknowledged. A disk that loses the last frame later cannot be told from that.
//
// The package knows files and positions. It does not know the content of frames.
package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Sector is the unit in which a disk writes all or nothing.
const Sector = 512

// step is the growth of a file.
const step = 1 << 20

// A File is one of the two files of a journal.
type File interface {
	io.WriterAt
	// Allocate makes room on the disk from the allocated length up to another one.
	Allocate(from, to int64) error
	// Sync returns when all written bytes are on the disk.
	Sync() error
}

// ErrBusy means that both files have frames which are not filed. Nothing was written.
var ErrBusy = errors.New("both files of the journal are in use")

// SyncError is an error of a sync. The state of the disk is unknown after it.
type SyncError struct{ Err error }

func (e *SyncError) Error() string { return e.Err.Error() }

func (e *SyncError) Unwrap() error { return e.Err }

// A Journal is open for frames. Its methods are for one goroutine at a time.
type Journal struct {
	nonce  uint64
	length int64
	files  [2]part
	active int
}

// A part is a file with its use.
type part struct {
	File
	allocated int64
	end       int64 // of the last frame
	last      int64 // position of the last frame
}

// New returns a Journal without frames in two files, and allocates their first part. When a file has a length, the other one is next.
func New(nonce uint64, length int64, a, b File) (*Journal, error) {
	j := &Journal{nonce: nonce, length: length, files: [2]part{{File: a}, {File: b}}}
	for i := range j.files {
		if err := j.files[i].allocate(step); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// A frame is:
//
//	magic     4 bytes
//	checksum  4 bytes, CRC-32C of all that follows
//	nonce     8 bytes
//	first     8 bytes, the first position
//	last      8 bytes, the last position
//	length    4 bytes, of the content
//	content
//
// and zeros up to a multiple of Sector. Numbers are in big-endian order.
const (
	magic  = "akjF"
	header = 4 + 4 + 8 + 8 + 8 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Begin returns a buffer to which the content of a frame is appended.
func Begin(buffer []byte) []byte {
	return append(buffer[:0], make([]byte, header)...)
}

// Append writes a frame that Begin began, and syncs it. All positions up to filed are needed no longer.
// Errors: ErrBusy; *SyncError; that of Allocate or of WriteAt, after which the frame does not exist if some of it
// could not be written.
func (j *Journal) Append(frame []byte, first, last, filed int64) error {
	length := len(frame) - header
	frame = append(frame, make([]byte, -len(frame)&(Sector-1))...)
	copy(frame, magic)
	binary.BigEndian.PutUint64(frame[8:], j.nonce)
	binary.BigEndian.PutUint64(frame[16:], uint64(first))
	binary.BigEndian.PutUint64(frame[24:], uint64(last))
	binary.BigEndian.PutUint32(frame[32:], uint32(length))
	binary.BigEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:header+length], castagnoli))

	to := j.active
	at := j.files[to].end
	if at > 0 && at+int64(len(frame)) > j.length {
		to, at = 1-to, 0
		if j.files[to].last > filed {
			return ErrBusy
		}
	}
	p := &j.files[to]
	end := at + int64(len(frame))
	if err := p.allocate(end); err != nil {
		return err
	}
	if _, err := p.WriteAt(frame, at); err != nil {
		return err
	}
	if err := p.Sync(); err != nil {
		return &SyncError{err}
	}
	j.active = to
	p.end, p.last = end, last
	return nil
}

// allocate makes room for a file of some length.
func (p *part) allocate(length int64) error {
	if length <= p.allocated {
		return nil
	}
	to := (length + step - 1) / step * step
	if err := p.Allocate(p.allocated, to); err != nil {
		return err
	}
	p.allocated = to
	return nil
}
