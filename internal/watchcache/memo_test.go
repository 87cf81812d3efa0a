package watchcache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMemo(t *testing.T) {
	type version string
	var o Object
	var computed int
	compute := func(result string, err error) func() ([]byte, error) {
		return func() ([]byte, error) { computed++; return []byte(result), err }
	}
	failure := errors.New("the webhook is down")
	for _, step := range []struct {
		key      any
		result   string
		err      error
		want     string
		wantErr  error
		computed int
	}{
		{key: version("v1"), result: "one", want: "one", computed: 1},
		{key: version("v1"), result: "other", want: "one", computed: 1},
		{key: "v1", result: "another type", want: "another type", computed: 2},
		{key: version("v2"), err: failure, wantErr: failure, computed: 3},
		{key: version("v2"), result: "two", want: "two", computed: 4}, // an error is not kept
		{key: version("v1"), result: "other", want: "one", computed: 4},
	} {
		got, err := o.Memo(step.key, compute(step.result, step.err))
		if string(got) != step.want || err != step.wantErr || computed != step.computed {
			t.Errorf("%v: %q, %v after %d computations; want %q, %v after %d",
				step.key, got, err, computed, step.want, step.wantErr, step.computed)
		}
	}
}

func TestMemoConcurrently(t *testing.T) {
	var o Object
	var computed [4]atomic.Int64
	var users sync.WaitGroup
	for i := range 64 {
		users.Go(func() {
			key := i % len(computed)
			got, err := o.Memo(key, func() ([]byte, error) {
				computed[key].Add(1)
				return fmt.Append(nil, key), nil
			})
			if string(got) != fmt.Sprint(key) || err != nil {
				t.Errorf("memo %d is %s, %v", key, got, err)
			}
		})
	}
	users.Wait()
	for key := range computed {
		if n := computed[key].Load(); n != 1 {
			t.Errorf("%d was computed %d times", key, n)
		}
	}
}

// Whoever waits for a computation that panics is let go.
func TestMemoPanics(t *testing.T) {
	var o Object
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		o.Memo("key", func() ([]byte, error) { panic("broken") })
	}()
	if got, err := o.Memo("key", func() ([]byte, error) { return []byte("well"), nil }); string(got) != "well" || err != nil {
		t.Errorf("then %q, %v", got, err)
	}
}

// Keys that nobody uses any longer, such as those of old schemas, do not pile up.
func TestMemoForgets(t *testing.T) {
	var o Object
	for i := range 100 {
		o.Memo(i, func() ([]byte, error) { return nil, nil })
	}
	n := 0
	for m := o.memos.first.Load(); m != nil; m = m.next {
		n++
	}
	if n > maxMemos {
		t.Errorf("%d memos are kept", n)
	}
}

// Who claims an object computes for all who ask, until it is settled; who comes
// later finds the value.
func TestClaim(t *testing.T) {
	var o Object
	compute := func() ([]byte, error) { return []byte("by memo"), nil }
	settle, ok := o.Claim("v1")
	if !ok {
		t.Fatal("what nobody has computed cannot be claimed")
	}
	if _, ok := o.Claim("v1"); ok {
		t.Error("it was claimed twice")
	}
	waiting := make(chan error)
	go func() {
		_, err := o.Memo("v1", compute)
		waiting <- err
	}()
	failure := errors.New("the webhook is down")
	settle(nil, failure)
	// Who asked before shares the error; who asked after it computes.
	if err := <-waiting; err != nil && err != failure {
		t.Errorf("got %v", err)
	}

	settle, ok = o.Claim("v2")
	if !ok {
		t.Fatal("another key cannot be claimed")
	}
	settle([]byte("by claim"), nil)
	if got, err := o.Memo("v2", compute); string(got) != "by claim" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, ok := o.Claim("v2"); ok {
		t.Error("what is computed was claimed")
	}
}
