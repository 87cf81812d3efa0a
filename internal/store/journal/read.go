package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/store/kv"
)

// A Content is the content of a file of a journal.
type Content struct {
	Name string
	Data []byte
}

// A Frame was found in a file.
type Frame struct {
	First, Last int64  // positions
	Content     []byte // shares the bytes of the file
	Where       string
}

// Read returns the frames of a journal, of which all positions up to filed are filed, in their order. Their positions have
// no gap.
// Errors: *kv.CorruptError.
func Read(nonce uint64, filed int64, files ...Content) ([]Frame, error) {
	var frames []Frame
	for _, file := range files {
		for at := 0; at+header <= len(file.Data); {
			frame, size := parse(nonce, file.Data[at:])
			if size == 0 {
				at += Sector
				continue
			}
			if frame.Last > filed {
				frame.Where = fmt.Sprintf("%s, byte %d", file.Name, at)
				frames = append(frames, frame)
			}
			at += (size + Sector - 1) / Sector * Sector
		}
	}
	order.Stable(frames, func(a, b Frame) int { return cmp.Compare(a.First, b.First) })
	for _, f := range frames {
		if f.First != filed+1 {
			return nil, &kv.CorruptError{Where: f.Where, Reason: fmt.Sprintf("the write %d follows %d", f.First, filed)}
		}
		filed = f.Last
	}
	return frames, nil
}

// parse returns the frame at the beginning of some bytes, and its size; 0 if there is none.
func parse(nonce uint64, data []byte) (f Frame, size int) {
	if !bytes.HasPrefix(data, []byte(magic)) || binary.BigEndian.Uint64(data[8:]) != nonce {
		return Frame{}, 0
	}
	length := int64(binary.BigEndian.Uint32(data[32:]))
	if length > int64(len(data)-header) {
		return Frame{}, 0
	}
	size = header + int(length)
	if crc32.Checksum(data[8:size], castagnoli) != binary.BigEndian.Uint32(data[4:]) {
		return Frame{}, 0
	}
	f.First = int64(binary.BigEndian.Uint64(data[16:]))
	f.Last = int64(binary.BigEndian.Uint64(data[24:]))
	f.Content = data[header:size:size]
	return f, size
}
