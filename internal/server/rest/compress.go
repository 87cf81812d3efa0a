package rest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressAbove is the size from which answers are compressed, if the client accepts gzip.
const compressAbove = 128 << 10

// takesGzip reports whether the client accepts gzip.
func takesGzip(r *http.Request) bool {
	for token := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

// gzips has compressors for the answers of a server. An answer has a compressor, of more than a megabyte,
// only while a block of it is compressed, in its turn. The answers of slow clients, and of many, thus take
// little memory.
var gzips sync.Pool // of *flate.Writer

// compress writes a block, or the end, of a stream of DEFLATE. Blocks are independent of each other.
func compress(to *bytes.Buffer, block []byte, end bool) {
	w, ok := gzips.Get().(*flate.Writer)
	if !ok {
		// Speed matters: the next better level takes more than twice the time to save a tenth of the
		// size.
		var err error
		if w, err = flate.NewWriter(nil, flate.BestSpeed); err != nil {
			panic(err) // The level is valid.
		}
	}
	w.Reset(to)
	_, _ = w.Write(block) // The buffer returns no error.
	if end {
		_ = w.Close()
	} else {
		_ = w.Flush()
	}
	w.Reset(nil)
	gzips.Put(w)
}

// gzipBlock is the size of a block, the most that BestSpeed compresses at a time.
const gzipBlock = 1<<16 - 1

// A zipper makes one stream of gzip.
type zipper struct {
	turns  *turns
	turn   *turn // nil before the first block, if the answer is no list
	out    bytes.Buffer
	sum    uint32 // of the input
	length uint32 // of the input
}

// add counts input.
func (z *zipper) add(data []byte) {
	z.sum = crc32.Update(z.sum, crc32.IEEETable, data)
	z.length += uint32(len(data))
}

// block compresses and writes input.
func (z *zipper) block(to io.Writer, data []byte, end bool) error {
	z.add(data)
	if z.turn == nil {
		own := z.turns.next()
		z.turn = &own
	}
	if z.turn.held {
		compress(&z.out, data, end)
	} else {
		z.turn.take()
		compress(&z.out, data, end)
		z.turn.give()
	}
	if end {
		z.out.Write(z.trailer(z.out.AvailableBuffer()))
	}
	_, err := z.out.WriteTo(to)
	return err
}

// trailer appends the end of the stream.
func (z *zipper) trailer(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, z.sum), z.length)
}

// A compressor compresses an answer once it is known to be large. Until then it buffers the
// answer.
type compressor struct {
	http.ResponseWriter
	zipper
	code    int
	decided bool   // the header was written
	held    []byte // output before that, or of the next block
	zipped  bool
}

// Unwrap is for http.ResponseController.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader decides at once if the length of the answer is known.
func (c *compressor) WriteHeader(code int) {
	if code < http.StatusOK {
		c.ResponseWriter.WriteHeader(code)
		return
	}
	if c.decided || c.code != 0 {
		return
	}
	c.code = code
	if length, err := strconv.Atoi(c.Header().Get("Content-Length")); err == nil {
		c.decide(length > compressAbove)
	}
}

func (c *compressor) Write(data []byte) (int, error) {
	if c.code == 0 {
		c.WriteHeader(http.StatusOK)
	}
	if c.decided && !c.zipped {
		return c.ResponseWriter.Write(data)
	}
	c.held = append(c.held, data...)
	if !c.decided {
		if len(c.held) <= compressAbove {
			return len(data), nil
		}
		c.decide(true)
	}
	rest := c.held
	for len(rest) >= gzipBlock {
		if err := c.block(c.ResponseWriter, rest[:gzipBlock], false); err != nil {
			return 0, err
		}
		rest = rest[gzipBlock:]
	}
	c.held = append(c.held[:0], rest...)
	return len(data), nil
}

// gzipHeader is the header of a file that was compressed by the fastest algorithm, on a system that is
// not known.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"

// decide writes the header.
func (c *compressor) decide(compress bool) {
	c.decided = true
	if compress {
		h := c.Header()
		h.Del("Content-Length")
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		c.zipped = true
		c.out.WriteString(gzipHeader)
	}
	c.ResponseWriter.WriteHeader(c.code)
}

// close ends the answer. It is not called for an aborted answer, which must not look complete.
func (c *compressor) close() {
	if c.code != 0 && !c.decided {
		c.decide(false)
		_, _ = c.ResponseWriter.Write(c.held)
	}
	if c.zipped {
		_ = c.block(c.ResponseWriter, c.held, true) // The client is gone if this fails.
	}
}
