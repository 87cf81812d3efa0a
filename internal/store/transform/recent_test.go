package transform_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/transform"
)

// counted counts the values that are decoded.
type counted struct {
	upper
	decoded *atomic.Int64
}

func (c counted) Decode(ctx context.Context, key string, stored []byte) []byte {
	c.decoded.Add(1)
	return c.upper.Decode(ctx, key, stored)
}

// A watch has the values of a write from the writer. It decodes those of other writers, of old writes, and of a
// write that was not committed.
func TestWatchDecodesWritesOfOthers(t *testing.T) {
	store := memkv.New(memkv.Options{})
	var decoded atomic.Int64
	b := transform.New(store, counted{decoded: &decoded}, transform.Options{})
	defer b.Close()
	commit := func(to kv.Backend, w kv.Write) int64 {
		t.Helper()
		revision, err := to.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	first := commit(b, kv.Write{Key: "/upper/a", Value: []byte("one"), With: []kv.Change{{Key: "/upper/b", Value: []byte("two")}}})
	second := commit(b, kv.Write{Key: "/upper/a", Value: []byte("three"), Expect: first, Was: []byte("one")})
	check := func(after, until int64, want string, decodes int64) {
		t.Helper()
		decoded.Store(0)
		if got := feed(t, b, after, until); got != want || decoded.Load() != decodes {
			t.Errorf("a watch tells of %s and decodes %d values, want %s and %d", got, decoded.Load(), want, decodes)
		}
	}
	// The first write of a is not its newest one.
	check(first-1, second, "/upper/a:one<- /upper/b:two<- /upper/a:three<-one", 1)
	check(second-1, second, "/upper/a:three<-one", 0)
	if _, err := b.Commit(t.Context(), kv.Write{Key: "/upper/a", Value: []byte("lost"), Expect: first, Was: []byte("false")}); err == nil {
		t.Fatal("a write with an old revision is committed")
	}
	third := commit(store, kv.Write{Key: "/upper/a", Value: []byte("OTHER"), Expect: second})
	check(third-1, third, "/upper/a:other<-three", 2)
	// A delete has no value, and the value before is known only to its writer.
	fourth := commit(b, kv.Write{Key: "/upper/a", Expect: third})
	check(fourth-1, fourth, "/upper/a:<-other", 1)

	large := strings.Repeat("x", 1<<19)
	var last int64
	for i := range 12 {
		last = commit(b, kv.Write{Key: fmt.Sprint("/upper/", i), Value: []byte(large)})
	}
	decoded.Store(0)
	feed(t, b, fourth, last)
	if n := decoded.Load(); n < 7 || n > 9 {
		t.Errorf("%d of 12 values of 1 MB, stored and plain, were decoded: 4 MB are kept", n)
	}
}
