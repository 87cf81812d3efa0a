package boltkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
)

// A copy has the content of one revision while writes go on. Each write changes both keys.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	defer s.Close()
	save, ok := kv.As[kv.Saver](s)
	if !ok {
		t.Fatal("the store has no Save")
	}
	stop, done := make(chan struct{}), make(chan error)
	var written atomic.Int64
	go func() {
		var at [2]int64
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			value := fmt.Appendf(nil, "%d", i)
			revision, err := s.Commit(context.Background(), kv.Write{
				Key: "/a", Value: value, Expect: at[0], With: []kv.Change{{Key: "/b", Value: value, Expect: at[1]}},
			})
			if err != nil {
				done <- err
				return
			}
			at = [2]int64{revision, revision + 1}
			written.Store(revision)
		}
	}()
	for written.Load() == 0 {
		runtime.Gosched()
	}
	for i := range 10 {
		before := written.Load()
		c, err := save.Copy(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var copied, rest bytes.Buffer
		if err := c.WriteFrom(t.Context(), &copied, 0); err != nil || int64(copied.Len()) != c.Size() {
			t.Fatalf("%d bytes of %d, %v", copied.Len(), c.Size(), err)
		}
		size := c.Size()
		from := size * int64(i) / 10
		if err := errors.Join(c.WriteFrom(t.Context(), &rest, from), c.Close()); err != nil || int64(rest.Len()) != size-from {
			t.Fatalf("the rest from %d has %d bytes, %v", from, rest.Len(), err)
		}
		copied.Truncate(int(from)) // as after an interruption
		copied.Write(rest.Bytes())
		file := filepath.Join(dir, fmt.Sprint("copy", i))
		if err := os.WriteFile(file, copied.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := boltkv.Mapped(file, "/")
		if err != nil {
			t.Fatal(err)
		}
		if r := m.Records; len(r) != 2 || string(r[0].Value) != string(r[1].Value) || m.Revision != r[1].Revision || m.Revision < before {
			t.Errorf("at %d, not before %d: %v", m.Revision, before, r)
		}
		m.Release()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := save.Copy(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has left: %v", err)
	}
	c, err := save.Copy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteFrom(ctx, io.Discard, 0); !errors.Is(err, context.Canceled) || c.Close() != nil {
		t.Errorf("a client that has left meanwhile: %v", err)
	}
}
