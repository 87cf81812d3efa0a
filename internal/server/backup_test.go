package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// saving is a store whose copy has a byte each second.
type saving struct {
	kv.Backend
	size int64
	err  error // at the end
}

func (s saving) Save(_ context.Context, begin func(int64) io.Writer) error {
	to := begin(s.size)
	for range s.size {
		time.Sleep(time.Second)
		if _, err := to.Write([]byte("x")); err != nil {
			return err
		}
	}
	return s.err
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
			serveBackup(b, slog.New(slog.DiscardHandler))(w, httptest.NewRequestWithContext(t.Context(), method, backupPath, nil))
			return w, nil
		}
		w, aborted := ask(saving{size: 30}, http.MethodGet)
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
		if _, aborted := ask(saving{size: 3, err: errors.New("damage")}, http.MethodGet); aborted != http.ErrAbortHandler {
			t.Errorf("an incomplete backup ends with %v", aborted)
		}
		if w, _ := ask(saving{size: 3}, http.MethodPost); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", w.Code)
		}
		if w, _ := ask(memkv.New(memkv.Options{}), http.MethodGet); w.Code != http.StatusBadRequest {
			t.Errorf("a store in memory: %d", w.Code)
		}
	})
}
