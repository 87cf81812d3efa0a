package watch

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var (
	duration = flag.Duration("duration", 8*time.Second, "time with writes; at most three seconds with -short")
	every    = flag.Duration("every", 2*time.Second, "approximate time between stops or kills of the server")
	writers  = flag.Int("writers", 16, "number of writers")
	watchers = flag.Int("watchers", 50, "number of watchers")
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
	s := &single{TB: t, program: program, dir: t.TempDir(), random: rand.New(rand.NewPCG(*seed, 0))}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	lasts := *duration
	if testing.Short() {
		lasts = min(lasts, 3*time.Second)
	}
	trouble := &Trouble{Lasts: lasts, Every: *every, Random: s.random, Strike: s.strike}
	Check(t, Options{
		Seed: *seed, Writers: *writers, Watchers: *watchers,
		Client: s.client, Ready: trouble.Wait, Disturb: trouble.Disturb,
	})
	if err := s.server.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("the server had %d lives", s.lives)
}

// A single is a single server, across its restarts.
type single struct {
	testing.TB
	program, dir, address string

	random *rand.Rand
	server *process.Server
	lives  int
}

// begin starts the server on the existing data, always at the same address.
func (s *single) begin() error {
	server, err := process.Start(s.Context(), s.program, s.dir, s.address)
	if err != nil {
		return err
	}
	s.server, s.address = server, server.Address()
	s.lives++
	return nil
}

func (s *single) client() (process.API, error) {
	client, err := process.Client(s.server.Kubeconfig)
	return process.API{Client: client, URL: s.server.URL}, err
}

// strike stops or kills the server and starts it again.
func (s *single) strike(context.Context) error {
	if s.random.IntN(2) == 0 {
		s.server.Kill()
	} else if err := s.server.Stop(); err != nil {
		return err
	}
	return s.begin()
}
