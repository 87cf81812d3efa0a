package backup

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A cutting server ends each answer after some bytes. It has a new copy for each tag.
type cutting struct {
	content []byte
	cut     int
	copies  int
	forgets bool // every second copy
}

func (s *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := 0
	if tag := fmt.Sprintf("%q", fmt.Sprint(s.copies)); r.Header.Get("If-Range") == tag && !s.forgets {
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
	} else {
		s.copies++
		s.forgets = false
		w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(s.copies)))
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(s.content)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	end := min(from+s.cut, len(s.content))
	_, _ = w.Write(s.content[from:end])
	if end < len(s.content) {
		panic(http.ErrAbortHandler)
	}
}

// A download goes on where it was interrupted. If the server has another copy, it begins again.
func TestDownload(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10_000)
	for name, s := range map[string]*cutting{
		"whole":     {content: content, cut: len(content)},
		"cut":       {content: content, cut: 30_000},
		"forgotten": {content: content, cut: 30_000, forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(s)
			defer server.Close()
			file, err := os.Create(filepath.Join(t.TempDir(), "copy"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			d := download{client: server.Client(), url: server.URL, to: file, pause: time.Millisecond}
			if err := d.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes differ, %v", len(got), err)
			}
		})
	}
	// A user who gives up, and a server that refuses.
	stuck := httptest.NewServer(&cutting{content: content, cut: 0})
	defer stuck.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&download{client: stuck.Client(), url: stuck.URL}).run(ctx); err == nil {
		t.Error("without a context, the download succeeds")
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","message":"not you"}`)
	}))
	defer refusing.Close()
	if err := (&download{client: refusing.Client(), url: refusing.URL}).run(t.Context()); err == nil || !strings.Contains(err.Error(), "not you") {
		t.Errorf("refused: %v", err)
	}
}
