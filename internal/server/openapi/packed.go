package openapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// packed is a cached document, compressed with gzip. Clients that accept gzip get these bytes.
type packed struct {
	data []byte
	size int64 // of the document
}

// packer compresses the document that is written to it.
type packer struct {
	out  bytes.Buffer
	gzip *gzip.Writer
	size int64
}

func newPacker() *packer {
	p := &packer{}
	w, err := gzip.NewWriterLevel(&p.out, gzip.DefaultCompression)
	if err != nil {
		panic("openapi: " + err.Error()) // The level is valid.
	}
	p.gzip = w
	return p
}

func (p *packer) Write(part []byte) (int, error) {
	p.size += int64(len(part))
	return p.gzip.Write(part)
}

func (p *packer) packed() packed {
	if err := p.gzip.Close(); err != nil {
		panic("openapi: " + err.Error()) // Writes to memory do not fail.
	}
	return packed{bytes.Clone(p.out.Bytes()), p.size}
}

func pack(doc []byte) packed {
	p := newPacker()
	_, _ = p.Write(doc) // Writes to memory do not fail.
	return p.packed()
}

func (p packed) unpack() []byte {
	doc := make([]byte, p.size)
	if _, err := io.ReadFull(&unpacking{packed: p}, doc); err != nil {
		panic("openapi: " + err.Error()) // It was compressed here.
	}
	return doc
}

// serve answers a request with the document. Only a whole answer is sent as gzip, and only if
// compressed is set: a range refers to the uncompressed document.
func (p packed) serve(w http.ResponseWriter, r *http.Request, made time.Time, compressed bool) {
	if compressed && r.Method != http.MethodHead && r.Header.Get("Range") == "" && acceptsGzip(r) {
		whole := &inGzip{ResponseWriter: w}
		http.ServeContent(whole, r, "", made, bytes.NewReader(p.data))
		return
	}
	http.ServeContent(w, r, "", made, &unpacking{packed: p})
}

// inGzip sets Content-Encoding on an answer with a body.
type inGzip struct{ http.ResponseWriter }

func (e *inGzip) WriteHeader(code int) {
	if code == http.StatusOK {
		e.Header().Del("Content-Length")
		e.Header().Set("Content-Encoding", "gzip")
	}
	e.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (e *inGzip) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// acceptsGzip reports whether the client accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for token := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(token, ";")
			name, weight = strings.TrimSpace(name), strings.TrimSpace(weight)
			if name == "gzip" && strings.TrimRight(weight, ".0") != "q=" {
				return true
			}
		}
	}
	return false
}

// unpacking decompresses a document as it is read. Seeking backwards starts again.
type unpacking struct {
	packed
	at   int64 // offset of the next Read
	gzip *gzip.Reader
	done int64 // bytes decompressed so far
}

func (u *unpacking) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += u.at
	case io.SeekEnd:
		offset += u.size
	}
	if offset < 0 {
		return 0, errors.New("openapi: a position before the document")
	}
	u.at = offset
	return offset, nil
}

func (u *unpacking) Read(buf []byte) (int, error) {
	if u.at >= u.size {
		return 0, io.EOF
	}
	if u.gzip == nil || u.done > u.at {
		start, err := gzip.NewReader(bytes.NewReader(u.data))
		if err != nil {
			return 0, err
		}
		u.gzip, u.done = start, 0
	}
	skipped, err := io.CopyN(io.Discard, u.gzip, u.at-u.done)
	u.done += skipped
	if err != nil {
		return 0, err
	}
	n, err := u.gzip.Read(buf)
	u.done += int64(n)
	u.at = u.done
	return n, err
}
