package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// saving is a store whose copies have a byte each second. They count as they are closed.
type saving struct {
	kv.Backend
	size   int64
	err    error // at the end
	copies *atomic.Int64
	open   *atomic.Int64
}

func (s saving) Copy(context.Context) (kv.Copy, error) {
	s.open.Add(1)
	return saved{s, byte('a' + s.copies.Add(1) - 1)}, nil
}

// A saved copy has one byte throughout.
type saved struct {
	saving
	content byte
}

func (s saved) Size() int64  { return s.size }
func (s saved) Close() error { s.open.Add(-1); return nil }

func (s saved) WriteFrom(_ context.Context, to io.Writer, offset int64) error {
	for range s.size - offset {
		time.Sleep(time.Second)
		if _, err := to.Write([]byte{s.content}); err != nil {
			return err
		}
	}
	return s.err
}

func savingOf(size int64, err error) saving {
	return saving{size: size, err: err, copies: new(atomic.Int64), open: new(atomic.Int64)}
}

// broken fails after some bytes, as a connection does.
type broken struct {
	*httptest.ResponseRecorder
	left int
}

func (b *broken) Write(data []byte) (int, error) {
	if b.left -= len(data); b.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return b.ResponseRecorder.Write(data)
}

// An interrupted client gets the rest of its copy within a minute. Later, or with another tag, it gets a whole
// new one. Few interrupted copies are kept, and none after the server.
func TestBackupResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savingOf(10, nil)
		b := newBackups(s, slog.New(slog.DiscardHandler))
		ask := func(enough int, tag, from string) *broken {
			w := &broken{httptest.NewRecorder(), enough}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, backupPath, nil)
			if tag != "" {
				r.Header.Set("If-Range", tag)
				r.Header.Set("Range", "bytes="+from+"-")
			}
			defer func() { recover() }()
			b.ServeHTTP(w, r)
			return w
		}
		interrupt := func() string {
			w := &broken{httptest.NewRecorder(), 4}
			func() {
				defer func() { recover() }()
				b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, backupPath, nil))
			}()
			return w.Header().Get("ETag")
		}
		tag := interrupt()
		time.Sleep(resumeWithin - time.Second)
		w := ask(100, tag, "4")
		if h := w.Header(); w.Code != http.StatusPartialContent || w.Body.String() != "aaaaaa" || h.Get("Content-Range") != "bytes 4-9/10" || h.Get("Content-Length") != "6" || h.Get("ETag") != tag || s.open.Load() != 0 {
			t.Errorf("%d %s %v, open %d", w.Code, w.Body, h, s.open.Load())
		}
		tag = interrupt()
		for _, from := range []string{"10", "-1", "x", "2-5"} {
			if w := ask(100, tag, from); w.Code != http.StatusOK || w.Body.Len() != 10 {
				t.Errorf("from %s: %d %s", from, w.Code, w.Body)
			}
		}
		if w := ask(100, `"other"`, "4"); w.Code != http.StatusOK || w.Body.Len() != 10 || s.open.Load() != 1 {
			t.Errorf("another tag: %d %s, open %d", w.Code, w.Body, s.open.Load())
		}
		time.Sleep(resumeWithin)
		synctest.Wait()
		if s.open.Load() != 0 {
			t.Errorf("%d copies are open after their time", s.open.Load())
		}
		if w := ask(100, tag, "4"); w.Code != http.StatusOK {
			t.Errorf("too late: %d", w.Code)
		}
		for range maxInterrupted + 2 {
			interrupt()
		}
		if s.open.Load() != maxInterrupted {
			t.Errorf("%d copies are open", s.open.Load())
		}
		b.close()
		interrupt()
		if s.open.Load() != 0 {
			t.Errorf("%d copies are open after the end", s.open.Load())
		}
	})
}

// deadlines records the write deadlines of an answer.
type deadlines struct {
	*httptest.ResponseRecorder
	left []time.Duration
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.left = append(d.left, time.Until(at))
	return nil
}

// A client of a backup has a minute for each part. An incomplete backup is broken off.
func TestBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(b kv.Backend, method string) (w *deadlines, aborted any) {
			w = &deadlines{ResponseRecorder: httptest.NewRecorder()}
			defer func() { aborted = recover() }()
			newBackups(b, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, backupPath, nil))
			return w, nil
		}
		w, aborted := ask(savingOf(30, nil), http.MethodGet)
		if w.Code != http.StatusOK || w.Body.Len() != 30 || w.Header().Get("Content-Length") != "30" || aborted != nil {
			t.Errorf("%d, %d bytes of %s, %v", w.Code, w.Body.Len(), w.Header().Get("Content-Length"), aborted)
		}
		if len(w.left) != 5 { // each seven seconds
			t.Errorf("deadlines %v", w.left)
		}
		for _, left := range w.left {
			if left != readTimeout {
				t.Errorf("a deadline in %v", left)
			}
		}
		if _, aborted := ask(savingOf(3, errors.New("damage")), http.MethodGet); aborted != http.ErrAbortHandler {
			t.Errorf("an incomplete backup ends with %v", aborted)
		}
		if w, _ := ask(savingOf(3, nil), http.MethodPost); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", w.Code)
		}
		if w, _ := ask(memkv.New(memkv.Options{}), http.MethodGet); w.Code != http.StatusBadRequest {
			t.Errorf("a store in memory: %d", w.Code)
		}
	})
}
