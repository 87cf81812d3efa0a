package kms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/store/encrypt/block"
)

const timeout = 3 * time.Second

// A fake is a KMS that stores the plain form of each source.
type fake struct {
	mu                     sync.Mutex
	answer                 status
	encryptsWith           string // the key ID, if it is not that of the status
	down                   bool   // calls time out
	lost                   map[string]bool
	plain                  map[string][]byte
	polls, encrypts, calls int // calls counts decryptions
}

func newFake() *fake {
	return &fake{answer: status{"v2", "ok", "key-1"}, lost: map[string]bool{}, plain: map[string][]byte{}}
}

// set changes the KMS.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// call waits as a call of a KMS that is down does.
func (f *fake) call(count *int) error {
	f.mu.Lock()
	down := f.down
	*count++
	f.mu.Unlock()
	if down {
		time.Sleep(timeout)
		return grpcstatus.Error(codes.DeadlineExceeded, "too late")
	}
	return nil
}

func (f *fake) status(context.Context) (status, error) {
	err := f.call(&f.polls)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answer, err
}

func (f *fake) encrypt(_ context.Context, _ string, plain []byte) (source, error) {
	if err := f.call(&f.encrypts); err != nil {
		return source{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := source{encrypted: fmt.Append(nil, "source-", f.encrypts), keyID: f.answer.keyID}
	if f.encryptsWith != "" {
		s.keyID = f.encryptsWith
	}
	f.plain[string(s.encrypted)] = plain
	return s, nil
}

func (f *fake) decrypt(_ context.Context, _ string, s *source) ([]byte, error) {
	if err := f.call(&f.calls); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost[s.keyID] {
		return nil, grpcstatus.Error(codes.NotFound, "no such key")
	}
	return f.plain[string(s.encrypted)], nil
}

func (f *fake) close() error { return nil }

// start starts a Plugin of a KMS. readable counts the calls of Readable.
func start(t *testing.T, s service, readable *int) *Plugin {
	p := newPlugin(&apiserver.KMSConfiguration{Name: "a", Timeout: &metav1.Duration{Duration: timeout}}, s,
		Options{Metrics: NewMetrics("server"), Log: slog.New(slog.DiscardHandler), Readable: func() { *readable++ }})
	p.Start(t.Context())
	t.Cleanup(func() { _ = p.Close() })
	return p
}

var (
	plain = []byte("plain")
	at    = []byte("/registry/secrets/a")
)

// A keeper is a Plugin or an Envelope.
type keeper interface {
	Seal(dst, plain, data []byte) ([]byte, error)
	Open(ctx context.Context, sealed, data []byte) (plain []byte, stale bool, err error)
}

func sealed(t *testing.T, p keeper) []byte {
	t.Helper()
	out, err := p.Seal(nil, plain, at)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// opens checks whether a value can be read, and whether it is stale.
func opens(t *testing.T, p keeper, value []byte, wantStale bool) {
	t.Helper()
	got, stale, err := p.Open(t.Context(), value, at)
	if err != nil || !bytes.Equal(got, plain) || stale != wantStale {
		t.Errorf("opened %q, stale %v, %v; want stale %v", got, stale, err, wantStale)
	}
}

// One seed serves all writes, with a new key for each. Reads need no call of the KMS. The value is bound
// to its key in the store.
func TestOneSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		p := start(t, f, &readable)
		one, two := sealed(t, p), sealed(t, p)
		if bytes.Equal(one, two) || bytes.Contains(one, plain) {
			t.Error("the values are not encrypted")
		}
		opens(t, p, one, false)
		opens(t, p, two, false)
		if _, _, err := p.Open(t.Context(), one, []byte("/registry/secrets/b")); err == nil {
			t.Error("a value of another key is read")
		}
		time.Sleep(time.Hour)
		opens(t, p, sealed(t, p), false)
		synctest.Wait()
		if f.encrypts != 1 || f.calls != 0 {
			t.Errorf("the KMS encrypted %d times and decrypted %d times", f.encrypts, f.calls)
		}
		if want := 60 + 1; f.polls < want-1 || f.polls > want+1 {
			t.Errorf("%d polls in an hour", f.polls)
		}
	})
}

// A new key ID is in force after the next poll. Values of the old one are stale, and a restarted server
// needs one call for each source.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		p := start(t, f, &readable)
		old := sealed(t, p)
		f.set(func() { f.answer.keyID = "key-2" })
		opens(t, p, sealed(t, p), false)
		time.Sleep(pollWell + time.Second)
		opens(t, p, old, true)
		now := sealed(t, p)
		opens(t, p, now, false)

		next := start(t, f, &readable)
		for range 3 {
			opens(t, next, old, true)
			opens(t, next, now, false)
		}
		synctest.Wait()
		if f.calls != 2 || readable != 0 {
			t.Errorf("%d calls for two sources; %d times readable", f.calls, readable)
		}
	})
}

// Values are written for three minutes after the last successful poll. Values with known sources are read
// for as long as it takes. After the failure everything works, with the same seed.
func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		p := start(t, f, &readable)
		value := sealed(t, p)
		f.set(func() { f.down = true })
		time.Sleep(trusted - time.Second)
		opens(t, p, sealed(t, p), false)
		time.Sleep(freshIll + timeout) // a poll in between has ended, and its result is old
		const cause = "rpc error: code = DeadlineExceeded desc = too late"
		for _, want := range []string{"failed to perform status section of the healthz check for KMS Provider a, error: " + cause, cause} {
			if err := p.Check(t.Context()); err == nil || err.Error() != want {
				t.Errorf("the check says %v, want %s", err, want)
			}
		}
		time.Sleep(2 * time.Second)
		if _, err := p.Seal(nil, plain, at); err == nil || !strings.Contains(err.Error(), "expired at") {
			t.Errorf("a write after three minutes: %v", err)
		}
		opens(t, p, value, false)
		f.set(func() { f.down = false })
		time.Sleep(pollIll + timeout)
		opens(t, p, sealed(t, p), false)
		synctest.Wait()
		if err := p.Check(t.Context()); err != nil || f.encrypts != 1 {
			t.Errorf("the check says %v; %d seeds", err, f.encrypts)
		}
	})
}

// A server that starts before its KMS reads and writes once that answers. It does not wait for the KMS
// for each source, and reports that values have become readable.
func TestStartsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		var values [][]byte
		for range 20 {
			values = append(values, sealed(t, start(t, f, &readable)))
		}
		f.set(func() { f.down = true })
		p := start(t, f, &readable)
		if _, err := p.Seal(nil, plain, at); !errors.Is(err, errNoSeed) {
			t.Errorf("a write: %v", err)
		}
		began := time.Now()
		for _, v := range values {
			if _, _, err := p.Open(t.Context(), v, at); grpcstatus.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a read: %v", err)
			}
		}
		if took := time.Since(began); took > timeout {
			t.Errorf("reads of 20 sources took %v", took)
		}
		f.set(func() { f.down = false })
		time.Sleep(retryMost + 2*timeout)
		for _, v := range values {
			opens(t, p, v, false)
		}
		sealed(t, p)
		synctest.Wait()
		if readable == 0 || readable > 2 {
			t.Errorf("%d times readable", readable)
		}
	})
}

// A source that the KMS rejects makes its values unreadable, and no others. Reads of it make no calls. It
// is tried again, and forgotten in the end.
func TestLostKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		lost := sealed(t, start(t, f, &readable))
		f.set(func() { f.answer.keyID, f.lost["key-1"] = "key-2", true })
		other := sealed(t, start(t, f, &readable))
		p := start(t, f, &readable)
		before := f.calls
		for range 5 {
			if _, _, err := p.Open(t.Context(), lost, at); grpcstatus.Code(err) != codes.NotFound {
				t.Errorf("a read: %v", err)
			}
		}
		opens(t, p, other, false)
		if f.calls != before+2 {
			t.Errorf("%d calls", f.calls-before)
		}
		f.set(func() { f.lost["key-1"] = false })
		time.Sleep(retryMost)
		opens(t, p, lost, true)
		synctest.Wait()
		if readable != 1 {
			t.Errorf("%d times readable", readable)
		}
		time.Sleep(2 * keep)
		f.set(func() { f.answer.keyID = "key-3" })
		time.Sleep(2 * pollWell) // a new seed prunes the cache
		synctest.Wait()
		if n := len(p.seeds.all); n != 1 {
			t.Errorf("%d sources are cached after two days", n)
		}
	})
}

// The check reports each kind of a wrong answer. The seed before stays, and its values are written until
// they expire.
func TestWrongAnswers(t *testing.T) {
	long := strings.Repeat("x", maxKeyID+1)
	for want, change := range map[string]func(*fake){
		"got unexpected healthz status: ill":                              func(f *fake) { f.answer.health = "ill" },
		"expected KMSv2 API version v2, got v3":                           func(f *fake) { f.answer.version = "v3" },
		"should not change after the initial status response version v2,": func(f *fake) { f.answer.version = "v2beta1" },
		"keyID is empty": func(f *fake) { f.answer.keyID = "" },
		"keyID is 1025 bytes, which exceeds the max size":       func(f *fake) { f.answer.keyID = long },
		"the KMS encrypts with another key than its status has": func(f *fake) { f.answer.keyID, f.encryptsWith = "key-2", "key-1" },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, readable := newFake(), 0
			p := start(t, f, &readable)
			f.set(func() { change(f) })
			time.Sleep(freshWell)
			if err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "kmsv2 Provider a is not healthy, error: ") {
				t.Errorf("the check says %v, want %s", err, want)
			}
			opens(t, p, sealed(t, p), false)
		})
	}
}

// Values of a plain AES key, as old servers wrote them, are read and are stale.
func TestOldForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, readable := newFake(), 0
		p := start(t, f, &readable)
		key := random()
		g, err := block.NewGCM(key)
		if err != nil {
			t.Fatal(err)
		}
		f.plain["old"] = key
		value := appendObject(nil, &object{source: source{kind: kindKey, encrypted: []byte("old"), keyID: "key-1"}, data: g.Encrypt(nil, plain, at)})
		opens(t, p, value, true)
	})
}

// The limits of Kubernetes hold for the answers of a KMS, and for stored values.
func TestLimits(t *testing.T) {
	good := source{kind: kindSeed, encrypted: []byte("x"), keyID: "k", annotations: map[string][]byte{"a.example.com": make([]byte, 100)}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*source){
		"unknown encryptedDEKSourceType: 2":                func(s *source) { s.kind = 2 },
		"encrypted DEK source is empty":                    func(s *source) { s.encrypted = nil },
		"encrypted DEK source is 1025 bytes":               func(s *source) { s.encrypted = make([]byte, maxEncrypted+1) },
		"failed to validate key id: keyID is empty":        func(s *source) { s.keyID = "" },
		"should be a domain with at least two segments":    func(s *source) { s.annotations = map[string][]byte{"a": nil} },
		"total size of annotations is 32781, which exceed": func(s *source) { s.annotations = map[string][]byte{"a.example.com": make([]byte, maxAnnotations)} },
	} {
		s := good.clone()
		change(&s)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
