package rest

import (
	"bytes"
	"encoding/binary"
	"net/http"

	netsocket "github.com/anykind/anykind/internal/network/socket"
	"github.com/anykind/anykind/internal/object/gate"
)

// A zippedWatch is the answer to a watch with initial events, as one stream of gzip. The initial events are compressed. Later
// events follow as stored blocks: they are small, watchers share their bytes, and an idle watch must not hold a compressor.
type zippedWatch struct {
	http.ResponseWriter
	zipper
	isLive bool // the initial events are over
	begun  bool // the header of gzip was written
	unread bool // clients may wait for the next block before they read the last one
	held   []byte
}

// emptyBlock is a stored block without data. After it, readers of DEFLATE return all data before it.
var emptyBlock = []byte{0, 0, 0, 0xff, 0xff}

// zipped returns the answer to a watch that wants initial events from a client that takes gzip, and nil for other watches.
func (h *Handler) zipped(r *call, wantsInitial bool) *zippedWatch {
	if !wantsInitial || netsocket.Wanted(r.Request) || !takesGzip(r.Request) || !h.options.Gates.On(gate.WatchListCompression) {
		return nil
	}
	z := &zippedWatch{ResponseWriter: r.w, zipper: zipper{turns: h.turns}}
	r.w = z
	return z
}

// Unwrap is for http.ResponseController.
func (z *zippedWatch) Unwrap() http.ResponseWriter { return z.ResponseWriter }

func (z *zippedWatch) WriteHeader(code int) {
	h := z.Header()
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	z.ResponseWriter.WriteHeader(code)
}

func (z *zippedWatch) Write(data []byte) (int, error) {
	if z.isLive {
		return len(data), z.store(data)
	}
	z.held = append(z.held, data...)
	for len(z.held) >= gzipBlock {
		if err := z.compress(z.held[:gzipBlock]); err != nil {
			return 0, err
		}
		z.held = append(z.held[:0], z.held[gzipBlock:]...)
	}
	return len(data), nil
}

// FlushError is for http.ResponseController.
func (z *zippedWatch) FlushError() error {
	if err := z.rest(); err != nil {
		return err
	}
	if z.unread {
		z.unread = false
		if _, err := z.ResponseWriter.Write(emptyBlock); err != nil {
			return err
		}
	}
	return http.NewResponseController(z.ResponseWriter).Flush()
}

// rest compresses and writes all that is held.
func (z *zippedWatch) rest() error {
	if len(z.held) == 0 {
		return nil
	}
	defer func() { z.held = z.held[:0] }()
	return z.compress(z.held)
}

// live ends the initial events.
func (z *zippedWatch) live() {
	if z == nil || z.isLive {
		return
	}
	_ = z.rest() // Later writes fail, too.
	z.isLive, z.held, z.out = true, nil, bytes.Buffer{}
}

func (z *zippedWatch) compress(block []byte) error {
	if !z.begun {
		z.begun = true
		z.out.WriteString(gzipHeader)
	}
	return z.block(z.ResponseWriter, block, false)
}

// store writes data as blocks that are not compressed.
func (z *zippedWatch) store(data []byte) error {
	z.add(data)
	z.unread = true
	for len(data) > 0 {
		block := data[:min(len(data), gzipBlock)]
		data = data[len(block):]
		head := make([]byte, 0, len(gzipHeader)+5)
		if !z.begun {
			z.begun = true
			head = append(head, gzipHeader...)
		}
		head = binary.LittleEndian.AppendUint16(append(head, 0), uint16(len(block)))
		head = binary.LittleEndian.AppendUint16(head, ^uint16(len(block)))
		if _, err := z.ResponseWriter.Write(head); err != nil {
			return err
		}
		if _, err := z.ResponseWriter.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// close ends the answer.
func (z *zippedWatch) close() {
	if z == nil {
		return
	}
	_ = z.rest()
	if z.begun {
		_, _ = z.ResponseWriter.Write(z.trailer([]byte{1, 0, 0, 0xff, 0xff})) // The client is gone if this fails.
	}
}
