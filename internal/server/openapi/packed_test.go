package openapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"testing"
)

// Whole answers are sent as gzip if the client accepts it. Ranges and lengths are those of the
// uncompressed document.
func TestWholeDocumentInGzip(t *testing.T) {
	h, _ := newHandler(t, Options{})
	plain := ask(h, "GET", "/openapi/v2")
	size := strconv.Itoa(plain.Body.Len())
	if got := plain.Header().Get("Content-Length"); got != size {
		t.Errorf("length %q of %s", got, size)
	}

	w := ask(h, "GET", "/openapi/v2", "Accept-Encoding: deflate, gzip;q=0.5")
	if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Content-Length") != "" {
		t.Errorf("%v", w.Header())
	}
	in, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if doc, err := io.ReadAll(in); err != nil || !bytes.Equal(doc, plain.Body.Bytes()) {
		t.Errorf("%d of %s bytes, %v", len(doc), size, err)
	}

	for name, headers := range map[string][]string{
		"refused": {"Accept-Encoding: gzip;q=0"},
		"range":   {"Accept-Encoding: gzip", "Range: bytes=100-199"},
	} {
		w := ask(h, "GET", "/openapi/v2", headers...)
		if w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", name, w.Header())
		}
		if name == "range" && (w.Code != http.StatusPartialContent || !bytes.Equal(w.Body.Bytes(), plain.Body.Bytes()[100:200])) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}

	w = ask(h, "HEAD", "/openapi/v2", "Accept-Encoding: gzip")
	if w.Header().Get("Content-Length") != size || w.Header().Get("Content-Encoding") != "" || len(w.Header().Values("Vary")) != 2 {
		t.Errorf("HEAD: %v", w.Header())
	}
	if w = ask(h, "POST", "/openapi/v2", "If-None-Match: "+plain.Header().Get("ETag")); w.Code != http.StatusPreconditionFailed {
		t.Errorf("POST: %d", w.Code)
	}
}

// A document can be read from any offset, forwards and backwards.
func TestUnpacking(t *testing.T) {
	doc := bytes.Repeat([]byte("0123456789"), 1000)
	u := &unpacking{packed: pack(doc)}
	for _, at := range []int64{0, 9990, 5000, 5010, 3} {
		buf := make([]byte, 10)
		if _, err := u.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(u, buf); err != nil || !bytes.Equal(buf, doc[at:at+10]) {
			t.Errorf("at %d: %q, %v", at, buf, err)
		}
	}
}
