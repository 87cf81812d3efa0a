package transform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/transform"
)

const limit = 1 << 20

// sealedMost is the stored size of the largest write of the tests, one of two values.
const sealedMost = limit + 2*kvtest.SealedMore

func openMemory(t testing.TB) kv.Backend {
	store := memkv.New(memkv.Options{MaxValueBytes: sealedMost})
	return transform.New(store, kvtest.NewSealed(t), transform.Options{MaxValueBytes: limit})
}

func openFile(t testing.TB) kv.Backend {
	t.Helper()
	store, err := boltkv.Open(t.TempDir(), boltkv.Options{
		MaxValueBytes: sealedMost,
		Fatal:         func(err error) { t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return transform.New(store, kvtest.NewSealed(t), transform.Options{MaxValueBytes: limit})
}

// A store of transformed values keeps the storage contract. With a file as backend, this includes
// earlier values, which are decoded from the file.
func TestContract(t *testing.T) {
	for name, open := range map[string]func(testing.TB) kv.Backend{"in memory": openMemory, "in a file": openFile} {
		t.Run(name, func(t *testing.T) { kvtest.Run(t, open, kvtest.ValueLimit(limit)) })
	}
}

func BenchmarkContract(b *testing.B) { kvtest.Bench(b, openMemory) }

// upper stores values of some keys in capitals.
type upper struct{}

func (upper) Encode(_ context.Context, key string, plain []byte) ([]byte, error) {
	if strings.HasPrefix(key, "/upper/") {
		return bytes.ToUpper(plain), nil
	}
	return plain, nil
}

func (upper) Decode(_ context.Context, key string, stored []byte) []byte {
	if strings.HasPrefix(key, "/upper/") {
		return bytes.ToLower(stored)
	}
	return stored
}

// All that a write writes is stored transformed, and is plain wherever it is read.
func TestWhereValuesAre(t *testing.T) {
	ctx := t.Context()
	store := memkv.New(memkv.Options{})
	b := transform.New(store, upper{}, transform.Options{})
	defer b.Close()
	commit := func(w kv.Write) int64 {
		t.Helper()
		revision, err := b.Commit(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	with := []kv.Change{{Key: "/upper/b", Value: []byte("two")}, {Key: "/c", Value: []byte("three")}}
	first := commit(kv.Write{Key: "/upper/a", Value: []byte("one"), With: with})
	commit(kv.Write{Key: "/upper/a", Value: []byte("four"), Expect: first, Was: []byte("one")})
	if string(with[0].Value) != "two" {
		t.Errorf("the writer's change is now %q", with[0].Value)
	}
	for _, side := range []struct {
		backend    kv.Backend
		list, feed string
	}{
		{store, "/c=three /upper/a=FOUR /upper/b=TWO", "/upper/a:ONE<- /upper/b:TWO<- /c:three<- /upper/a:FOUR<-ONE"},
		{b, "/c=three /upper/a=four /upper/b=two", "/upper/a:one<- /upper/b:two<- /c:three<- /upper/a:four<-one"},
	} {
		if got := list(t, side.backend); got != side.list {
			t.Errorf("%T has %s, want %s", side.backend, got, side.list)
		}
		if got := feed(t, side.backend, first-1, first+3); got != side.feed {
			t.Errorf("%T tells of %s, want %s", side.backend, got, side.feed)
		}
	}
	var conflict *kv.ConflictError
	if _, err := b.Commit(ctx, kv.Write{Key: "/upper/a", Value: []byte("five"), Expect: first}); !errors.As(err, &conflict) || string(conflict.Actual.Value) != "four" {
		t.Errorf("a conflict is %+v", err)
	}
}

func list(t *testing.T, b kv.Backend) string {
	t.Helper()
	page, err := b.List(t.Context(), kv.Range{Prefix: "/"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range page.Records {
		all = append(all, fmt.Sprintf("%s=%s", r.Key, r.Value))
		if one, err := b.Get(t.Context(), r.Key, kv.Latest); err != nil || !bytes.Equal(one.Value, r.Value) {
			t.Errorf("get of %s: %q, %v; the list has %q", r.Key, one.Value, err, r.Value)
		}
	}
	return strings.Join(all, " ")
}

func feed(t *testing.T, b kv.Backend, after, until int64) string {
	t.Helper()
	var all []string
	for batch, err := range b.Watch(t.Context(), "/", after) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			all = append(all, fmt.Sprintf("%s:%s<-%s", e.Key, e.Value, e.Prev))
		}
		if batch.Revision >= until {
			break
		}
	}
	return strings.Join(all, " ")
}

// nothing encodes every value as nil.
type nothing struct{}

func (nothing) Encode(context.Context, string, []byte) ([]byte, error) { return nil, nil }
func (nothing) Decode(context.Context, string, []byte) []byte          { return nil }

// A transformation cannot delete a written value, hide an existing one, or restore a deleted one.
func TestAbsentStaysAbsent(t *testing.T) {
	b := transform.New(memkv.New(memkv.Options{}), nothing{}, transform.Options{})
	defer b.Close()
	revision, err := b.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Get(t.Context(), "/a", kv.Latest); err != nil || r.Value == nil {
		t.Errorf("what was written is %+v, %v", r, err)
	}
	deleted, err := b.Commit(t.Context(), kv.Write{Key: "/a", Expect: revision})
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range b.Watch(t.Context(), "/", revision) {
		if err != nil || len(batch.Events) != 1 || batch.Events[0].Value != nil || batch.Events[0].Prev == nil {
			t.Errorf("of the deletion at %d a watch says %+v, %v", deleted, batch, err)
		}
		break
	}
}

// The limit applies to plain values, for any size of the stored form.
func TestLimitIsOfPlainValues(t *testing.T) {
	const most = 100
	b := transform.New(memkv.New(memkv.Options{MaxValueBytes: 2 * most}), double{}, transform.Options{MaxValueBytes: most})
	defer b.Close()
	if _, err := b.Commit(t.Context(), kv.Write{Key: "/a", Value: make([]byte, most)}); err != nil {
		t.Errorf("a value of the limit: %v", err)
	}
	var large *kv.TooLargeError
	if _, err := b.Commit(t.Context(), kv.Write{Key: "/b", Value: make([]byte, most+1)}); !errors.As(err, &large) || large.Size != most+1 || large.Limit != most {
		t.Errorf("one byte more: %v", err)
	}
}

type double struct{}

func (double) Encode(_ context.Context, _ string, plain []byte) ([]byte, error) {
	return bytes.Repeat(plain, 2), nil
}
func (double) Decode(_ context.Context, _ string, stored []byte) []byte {
	return stored[:len(stored)/2]
}

// full encodes no values of some keys.
type full struct{ upper }

var errFull = errors.New("no key")

func (full) Encode(_ context.Context, key string, plain []byte) ([]byte, error) {
	if strings.HasPrefix(key, "/full/") {
		return nil, errFull
	}
	return plain, nil
}

// A write with a value that cannot be encoded changes nothing, whichever of its values it is. A deletion
// has no value to encode.
func TestEncodeFails(t *testing.T) {
	store := memkv.New(memkv.Options{})
	b := transform.New(store, full{}, transform.Options{})
	defer b.Close()
	revision, err := store.Commit(t.Context(), kv.Write{Key: "/full/old", Value: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	value := []byte("y")
	for _, w := range []kv.Write{
		{Key: "/full/old", Value: value, Expect: revision},
		{Key: "/a", Value: value, With: []kv.Change{{Key: "/full/b", Value: value}}},
	} {
		var failed *kv.EncodeError
		if _, err := b.Commit(t.Context(), w); !errors.As(err, &failed) || !errors.Is(err, errFull) || !strings.HasPrefix(failed.Key, "/full/") {
			t.Errorf("a write of %s failed with %v", w.Key, err)
		}
	}
	if now, err := store.Revision(t.Context()); err != nil || now != revision {
		t.Errorf("the store is at %d, %v", now, err)
	}
	if _, err := b.Commit(t.Context(), kv.Write{Key: "/full/old", Expect: revision}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}

// As finds an ability of a backend below any number of decorators.
func TestAs(t *testing.T) {
	store := memkv.New(memkv.Options{})
	defer store.Close()
	var b kv.Backend = store
	for range 3 {
		b = transform.New(b, upper{}, transform.Options{})
	}
	if found, ok := kv.As[*memkv.Store](b); !ok || found != store {
		t.Errorf("found %v, %v", found, ok)
	}
	type other interface{ Other(context.Context) }
	if _, ok := kv.As[other](b); ok {
		t.Error("found what none of them is")
	}
}
