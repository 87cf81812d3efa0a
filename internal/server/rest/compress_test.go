package rest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// zipped sends a request that accepts gzip, and decompresses the answer.
func (s *server) zipped(path, encodings string) (a answer, compressed int) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), "GET", path, nil)
	r.Header.Set("Accept-Encoding", encodings)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	body := w.Body.Bytes()
	if w.Header().Get("Content-Encoding") == "gzip" {
		compressed = len(body)
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			s.t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			s.t.Fatal(err)
		}
		if w.Header().Get("Content-Length") != "" || w.Header().Get("Vary") != "Accept-Encoding" {
			s.t.Errorf("headers %v", w.Header())
		}
	}
	return answer{s.t, w.Code, w.Header(), string(body)}, compressed
}

func wide(name string, size int) string {
	return named(name, `,"spec":{"a":"`+strings.Repeat("abcdefgh", size/8)+`"}`)
}

// Large answers are compressed for clients that accept gzip; the content is the same.
func TestGzip(t *testing.T) { synctest.Test(t, testGzip) }

func testGzip(t *testing.T) {
	s := newServer(t)
	for i := range 8 {
		s.post(leads, wide(fmt.Sprintf("w%d", i), 20<<10)).is(201)
	}
	s.post(hubs, strings.Replace(wide("large", 200<<10), "Lead", "Hub", 1)).is(201)
	s.post(hubs, object1("Hub", "small")).is(201)
	for _, tt := range []struct {
		path, encodings string
		compressed      bool
	}{
		{leads, "gzip", true},
		{leads, "br, gzip", true},
		{leads, "", false},
		{leads, "deflate, gzip;q=0", false},
		{leads + "?limit=2", "gzip", false}, // 40 kB
		{leads + "?pretty=true", "gzip", true},
		{hubs + "/large", "gzip", true},
		{hubs + "/small", "gzip", false},
		{hubs + "/none", "gzip", false},
	} {
		plain := s.get(tt.path)
		a, compressed := s.zipped(tt.path, tt.encodings)
		if a.code != plain.code || a.body != plain.body || a.header.Get("Content-Type") != plain.header.Get("Content-Type") {
			t.Errorf("%s, %s: another answer: %d, %d bytes, %v", tt.path, tt.encodings, a.code, len(a.body), a.header)
		}
		if (compressed > 0) != tt.compressed || compressed > len(plain.body)/10 {
			t.Errorf("%s, %s: %d bytes compressed to %d", tt.path, tt.encodings, len(plain.body), compressed)
		}
	}
	if _, compressed := s.zipped(leads+"?watch=1&timeoutSeconds=1&resourceVersion=1", "gzip"); compressed > 0 {
		t.Error("a watch was compressed")
	}
}

// broken is a client that disconnects after some bytes.
type broken struct {
	*httptest.ResponseRecorder
	left int
}

func (b *broken) Write(data []byte) (int, error) {
	if b.left -= len(data); b.left < 0 {
		return 0, errors.New("gone")
	}
	return b.ResponseRecorder.Write(data)
}

// The decompressed form of an aborted answer does not look complete.
func TestGzipBrokenOff(t *testing.T) {
	s := newServer(t)
	random := new(bytes.Buffer)
	for i := range 40000 {
		fmt.Fprintf(random, "%x", i*i*7919)
	}
	for i := range 4 {
		s.post(leads, named(fmt.Sprintf("w%d", i), `,"spec":{"a":"`+random.String()+`"}`)).is(201)
	}
	w := &broken{httptest.NewRecorder(), 200 << 10}
	r := httptest.NewRequestWithContext(t.Context(), "GET", leads, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("panicked with %v", got)
			}
		}()
		s.handler.ServeHTTP(w, r)
	}()
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(z); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("reading what came ended with %v", err)
	}
}
