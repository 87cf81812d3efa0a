package rest

import (
	"compress/gzip"
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

// gzips is a pool of gzip writers.
type gzips struct{ pool sync.Pool }

func (g *gzips) take() *gzip.Writer {
	if w, ok := g.pool.Get().(*gzip.Writer); ok {
		return w
	}
	// Speed matters: the next better level takes more than twice the time to save a tenth of the
	// size.
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // The level is valid.
	}
	return w
}

func (g *gzips) give(w *gzip.Writer) {
	w.Reset(nil)
	g.pool.Put(w)
}

// A compressor compresses an answer once it is known to be large. Until then it buffers the
// answer.
type compressor struct {
	http.ResponseWriter
	gzips   *gzips
	code    int
	decided bool         // the header was written
	held    []byte       // output before that
	gzip    *gzip.Writer // nil for an uncompressed answer
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
	if !c.decided {
		if len(c.held)+len(data) <= compressAbove {
			c.held = append(c.held, data...)
			return len(data), nil
		}
		if err := c.release(true); err != nil {
			return 0, err
		}
	}
	return c.pass(data)
}

// decide writes the header.
func (c *compressor) decide(compress bool) {
	c.decided = true
	if compress {
		h := c.Header()
		h.Del("Content-Length")
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		c.gzip = c.gzips.take()
		c.gzip.Reset(c.ResponseWriter)
	}
	c.ResponseWriter.WriteHeader(c.code)
}

// release decides, and writes the buffer.
func (c *compressor) release(compress bool) error {
	c.decide(compress)
	_, err := c.pass(c.held)
	c.held = nil
	return err
}

func (c *compressor) pass(data []byte) (int, error) {
	if c.gzip != nil {
		return c.gzip.Write(data)
	}
	return c.ResponseWriter.Write(data)
}

// close ends the answer. It is not called for an aborted answer, which must not look complete.
func (c *compressor) close() {
	if c.code != 0 && !c.decided {
		_ = c.release(false)
	}
	if c.gzip != nil && c.gzip.Close() == nil {
		// After a failed write, net/http may still use the writer.
		c.gzips.give(c.gzip)
	}
}
