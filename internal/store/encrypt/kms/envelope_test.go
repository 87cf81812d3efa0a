package kms

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/store/encrypt/block"
)

// A fakeOld is a KMS with version 1 of the protocol that stores each key.
type fakeOld struct{ *fake }

func (f fakeOld) encrypt(_ context.Context, plain []byte) ([]byte, error) {
	if err := f.call(&f.encrypts); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	encrypted := fmt.Append(nil, "key-", len(f.plain))
	f.plain[string(encrypted)] = plain
	return encrypted, nil
}

func startEnvelope(t *testing.T, f *fake, cache int32, readable *int) *Envelope {
	t.Helper()
	e := newEnvelope(&apiserver.KMSConfiguration{Name: "a", Timeout: &metav1.Duration{Duration: timeout}, CacheSize: &cache}, fakeOld{f},
		Options{Metrics: NewMetrics("server"), Log: slog.New(slog.DiscardHandler), Readable: func() { *readable++ }})
	e.Start(t.Context())
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Each write takes one call of the KMS, and each read one that finds no key in the cache.
func TestEnvelope(t *testing.T) {
	for _, cache := range []int32{-1, 2, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f, readable := newFake(), 0
			e := startEnvelope(t, f, cache, &readable)
			begun, decrypted := f.encrypts, f.calls // by the first check
			var values [][]byte
			for range 3 {
				values = append(values, sealed(t, e))
				time.Sleep(time.Second) // the oldest key leaves the cache first
			}
			if f.encrypts != begun+3 {
				t.Errorf("%d calls for three writes", f.encrypts-begun)
			}
			for range 2 {
				for _, v := range values {
					opens(t, e, v, false)
					time.Sleep(time.Second)
				}
			}
			if got, want := f.calls-decrypted, map[int32]int{-1: 6, 2: 6, 1000: 0}[cache]; got != want {
				t.Errorf("a cache of %d: %d calls for six reads, want %d", cache, got, want)
			}
			if n := len(e.keys.all); n > max(int(cache), 0) {
				t.Errorf("%d keys in a cache of %d", n, cache)
			}
			if _, _, err := e.Open(t.Context(), values[0], []byte("/registry/secrets/b")); err == nil {
				t.Error("a value of another key is read")
			}
		})
	}
}

// Values with AES-CBC, as old servers wrote them, are read and are stale. Damaged values are errors.
func TestOldEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		e := startEnvelope(t, f, 10, &readable)
		key := random()
		f.plain["old"] = key
		c, err := block.NewCBC(key)
		if err != nil {
			t.Fatal(err)
		}
		value := c.Encrypt(append(binary.BigEndian.AppendUint16(nil, 3), "old"...), plain)
		opens(t, e, value, true)
		for i := range 5 {
			if _, _, err := e.Open(t.Context(), value[:i], at); err == nil {
				t.Errorf("%d bytes are read", i)
			}
		}
		damaged := sealed(t, e)
		damaged[len(damaged)-1] ^= 1
		if _, _, err := e.Open(t.Context(), damaged, at); err == nil {
			t.Error("a damaged value is read")
		}
	})
}

// While the KMS does not answer, writes fail, values with known keys are read, and others once it answers again.
func TestEnvelopeDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		e := startEnvelope(t, f, 10, &readable)
		known := sealed(t, e)
		other := sealed(t, startEnvelope(t, f, 10, &readable))
		f.set(func() { f.down = true })
		opens(t, e, known, false)
		if _, err := e.Seal(nil, plain, at); grpcstatus.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a write: %v", err)
		}
		if _, _, err := e.Open(t.Context(), other, at); grpcstatus.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a read: %v", err)
		}
		time.Sleep(freshWell)
		if err := e.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "too late") {
			t.Errorf("the check says %v", err)
		}
		f.set(func() { f.down = false })
		time.Sleep(retryMost + 2*timeout)
		opens(t, e, other, false)
		synctest.Wait()
		if err := e.Check(t.Context()); err != nil || readable == 0 {
			t.Errorf("the check says %v; %d times readable", err, readable)
		}
	})
}
