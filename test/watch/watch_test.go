package watch

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var (
	duration = flag.Duration("duration", 8*time.Second, "how long is written")
	every    = flag.Duration("every", 2*time.Second, "how often the server is stopped or killed, about")
	writers  = flag.Int("writers", 16, "how many write")
	watchers = flag.Int("watchers", 50, "how many watch")
	seed     = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

// One server on one store, which is stopped and killed.
func TestWatch(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	s := &single{TB: t, program: program, dir: t.TempDir(), random: rand.New(rand.NewPCG(*seed, 0)), up: make(chan struct{})}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	Check(t, Options{
		Seed: *seed, Writers: *writers, Watchers: *watchers,
		Client: s.client, Ready: s.wait, Disturb: s.disturb,
	})
	if err := s.server.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("the server had %d lives", s.lives)
}

// A single server, over all of its lives.
type single struct {
	testing.TB
	program, dir, address string

	random *rand.Rand
	server *process.Server
	lives  int

	mu sync.Mutex
	up chan struct{} // closed while the server is there
}

// begin starts the server on what is there, always at the same address.
func (s *single) begin() error {
	server, err := process.Start(s.Context(), s.program, s.dir, s.address)
	if err != nil {
		return err
	}
	s.server, s.address = server, server.Address()
	s.lives++
	close(s.gate())
	return nil
}

func (s *single) client() (process.API, error) {
	client, err := process.Client(s.server.Kubeconfig)
	return process.API{Client: client, URL: s.server.URL}, err
}

func (s *single) gate() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// wait returns when the server is there.
func (s *single) wait(ctx context.Context) error {
	select {
	case <-s.gate():
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// disturb stops or kills the server and starts it again, until time is up.
func (s *single) disturb(ctx context.Context) error {
	over := time.After(*duration)
	for {
		next := time.NewTimer(*every/2 + time.Duration(s.random.Int64N(int64(*every))))
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			next.Stop()
			return nil
		case <-next.C:
		}
		s.mu.Lock()
		s.up = make(chan struct{})
		s.mu.Unlock()
		if s.random.IntN(2) == 0 {
			s.server.Kill()
		} else if err := s.server.Stop(); err != nil {
			return err
		}
		if err := s.begin(); err != nil {
			return err
		}
	}
}
