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
	o := NewObject("a", []byte(`{"metadata":{}}`), 1)
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
		got, err := o.Memo(step.key, Validity{}, compute(step.result, step.err))
		if string(got) != step.want || err != step.wantErr || computed != step.computed {
			t.Errorf("%v: %q, %v after %d computations; want %q, %v after %d",
				step.key, got, err, computed, step.want, step.wantErr, step.computed)
		}
	}
}

func TestMemoConcurrently(t *testing.T) {
	o := NewObject("a", []byte(`{"metadata":{}}`), 1)
	var computed [4]atomic.Int64
	var users sync.WaitGroup
	for i := range 64 {
		users.Go(func() {
			key := i % len(computed)
			got, err := o.Memo(key, Validity{}, func() ([]byte, error) {
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

// A panic in a computation releases the waiting callers.
func TestMemoPanics(t *testing.T) {
	o := NewObject("a", []byte(`{"metadata":{}}`), 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		o.Memo("key", Validity{}, func() ([]byte, error) { panic("broken") })
	}()
	if got, err := o.Memo("key", Validity{}, func() ([]byte, error) { return []byte("well"), nil }); string(got) != "well" || err != nil {
		t.Errorf("then %q, %v", got, err)
	}
}

// Unused keys, such as those of old schemas, do not accumulate.
func TestMemoForgets(t *testing.T) {
	o := NewObject("a", []byte(`{"metadata":{}}`), 1)
	for i := range 100 {
		o.Memo(i, Validity{}, func() ([]byte, error) { return nil, nil })
	}
	n := 0
	for m := o.content.Load().memos.first.Load(); m != nil; m = m.next {
		n++
	}
	if n > maxMemos {
		t.Errorf("%d memos are kept", n)
	}
}

// The claimant of an object computes for all callers until it publishes; later callers find the value.
func TestClaim(t *testing.T) {
	o := NewObject("a", []byte(`{"metadata":{}}`), 1)
	compute := func() ([]byte, error) { return []byte("by memo"), nil }
	publish, ok := o.Claim("v1", Validity{})
	if !ok {
		t.Fatal("a memo without a value cannot be claimed")
	}
	if _, ok := o.Claim("v1", Validity{}); ok {
		t.Error("it was claimed twice")
	}
	waiting := make(chan error)
	go func() {
		_, err := o.Memo("v1", Validity{}, compute)
		waiting <- err
	}()
	failure := errors.New("the webhook is down")
	publish(nil, failure)
	// Earlier callers share the error; later ones compute.
	if err := <-waiting; err != nil && err != failure {
		t.Errorf("got %v", err)
	}

	publish, ok = o.Claim("v2", Validity{})
	if !ok {
		t.Fatal("another key cannot be claimed")
	}
	publish([]byte("by claim"), nil)
	if got, err := o.Memo("v2", Validity{}, compute); string(got) != "by claim" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, ok := o.Claim("v2", Validity{}); ok {
		t.Error("what is computed was claimed")
	}
}

// A result from before a caller's validity is not valid for it, even if it is still being computed.
func TestMemoOfAMoment(t *testing.T) {
	o := NewObject("a", []byte(`{"metadata":{}}`), 1)
	get := func(m Validity, result string) string {
		value, err := o.Memo("v1", m, func() ([]byte, error) { return []byte(result), nil })
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}
	for _, step := range []struct {
		validity     Validity
		result, want string
	}{
		{Validity{Since: 0, At: 5}, "one", "one"},
		{Validity{Since: 5, At: 9}, "two", "one"},
		{Validity{Since: 6, At: 10}, "three", "three"},
		{Validity{Since: 0, At: 11}, "four", "three"}, // later serves as well
		{Validity{Since: 12, At: 12}, "five", "five"},
	} {
		if got := get(step.validity, step.result); got != step.want {
			t.Errorf("%+v: got %s, want %s", step.validity, got, step.want)
		}
	}
	if n := o.content.Load().memos.first.Load().count; n != 1 {
		t.Errorf("%d results are kept of one key", n)
	}
	if _, ok := o.Claim("v1", Validity{Since: 12, At: 13}); ok {
		t.Error("what serves can be claimed")
	}
	publish, ok := o.Claim("v1", Validity{Since: 13, At: 13})
	if !ok {
		t.Fatal("what serves no more cannot be claimed")
	}
	later := make(chan string)
	go func() { later <- get(Validity{Since: 14, At: 14}, "seven") }()
	publish([]byte("six"), nil)
	if got := <-later; got != "seven" {
		t.Errorf("who asked for what is later got %s", got)
	}
}
