package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anykind/anykind/test/linear"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/watch"
)

var (
	duration = flag.Duration("duration", 6*time.Second, "time with injected failures")
	writers  = flag.Int("writers", 8, "number of writers")
	watchers = flag.Int("watchers", 20, "number of watchers")
	seed     = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

// Three servers over an etcd of three members. Any of them may die, freeze, or be cut off from others
// at any time: watches still get all events in order, whichever server they resume at, and all
// responses are still linearizable.
func TestThreeServersOverThreeMembersInTrouble(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	f := newFleet(t)
	watch.Check(t, watch.Options{
		Seed: *seed, Writers: *writers, Watchers: *watchers, Late: true,
		Client: f.client, Ready: pause, Disturb: f.disturb,
	})
	for _, s := range f.servers {
		if err := s.process.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%v", f.made)
	t.Logf("%d requests in %d histories, %d without an answer, were in order; of %d more it was not found in time",
		f.linear.Requests, f.histories, f.linear.Unknown, f.undecided)
}

// pause is the delay before a retry.
func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A fleet is three servers and their etcd.
type fleet struct {
	testing.TB
	program string
	flags   []string
	random  *rand.Rand
	etcd    *Cluster
	servers []*server
	// The credentials of all servers. Their processes restart, and clients keep the same credentials.
	kubeconfig string

	made      map[string]int // number of faults, by name
	linear    linear.Result
	histories int
	undecided int
}

// A server has a Proxy for each member.
type server struct {
	dir, address string
	ways         []*Proxy
	process      *process.Server
}

// signal suspends or resumes the process.
func (s *server) signal(what syscall.Signal) { _ = syscall.Kill(s.process.PID(), what) }

func newFleet(t testing.TB, flags ...string) *fleet {
	t.Helper()
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{TB: t, program: program, flags: flags, random: rand.New(rand.NewPCG(*seed, 0)), etcd: StartCluster(t), made: map[string]int{}}
	for i := range 3 {
		s := &server{dir: filepath.Join(t.TempDir(), fmt.Sprintf("s%d", i))}
		for _, m := range f.etcd.Members {
			s.ways = append(s.ways, NewProxy(t, strings.TrimPrefix(m.Client, "http://")))
		}
		if i > 0 {
			// All have the credentials of the first, as a configuration would provide.
			if err := os.CopyFS(s.dir, os.DirFS(f.servers[0].dir)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.begin(s); err != nil {
			t.Fatal(err)
		}
		f.servers = append(f.servers, s)
	}
	f.kubeconfig = f.servers[0].process.Kubeconfig
	return f
}

// begin starts a server, always at the same address.
func (f *fleet) begin(s *server) (err error) {
	var urls []string
	for _, way := range s.ways {
		urls = append(urls, "http://"+way.Address())
	}
	flags := append([]string{"--etcd-servers", strings.Join(urls, ",")}, f.flags...)
	s.process, err = process.Start(context.WithoutCancel(f.Context()), f.program, s.dir, s.address, flags...)
	if err == nil && s.address == "" {
		s.address = s.process.Address()
	}
	return err
}

// client returns a client that uses another server for each request.
func (f *fleet) client() (process.API, error) {
	client, err := process.Client(f.kubeconfig)
	if err != nil {
		return process.API{}, err
	}
	client.Transport = &spread{f, client.Transport.(*http.Transport)}
	return process.API{Client: client, URL: "https://" + f.servers[0].address}, nil
}

// A spread sends each request to a random server.
type spread struct {
	fleet *fleet
	*http.Transport
}

func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = s.fleet.servers[rand.IntN(len(s.fleet.servers))].address
	return s.Transport.RoundTrip(r)
}

// disturb injects faults, and checks histories meanwhile.
func (f *fleet) disturb(ctx context.Context) error {
	over, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	var checking sync.WaitGroup
	wrong := make(chan error, 1)
	checking.Go(func() {
		for ; over.Err() == nil; f.histories++ {
			r, err := linear.Check(ctx, linear.Options{
				Seed: *seed + uint64(f.histories), Clients: 6, Requests: 30, Lossy: true,
				Namespace: fmt.Sprintf("history-%d", f.histories), Client: f.client,
			})
			if err != nil {
				wrong <- err
				return
			}
			if r.Undecided {
				f.undecided++
				continue
			}
			f.linear.Requests += r.Requests
			f.linear.Unknown += r.Unknown
		}
	})
	err := f.troubles(ctx, over)
	checking.Wait()
	close(wrong)
	return errors.Join(err, <-wrong)
}

// troubles injects one fault after the other until over ends.
func (f *fleet) troubles(ctx, over context.Context) error {
	for over.Err() == nil {
		name, err := f.trouble(over)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f.made[name]++
		if err := f.recovered(ctx); err != nil {
			return fmt.Errorf("after %s: %w", name, err)
		}
	}
	return nil
}

// hold keeps a fault for a while.
func (f *fleet) hold(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(time.Duration(f.random.Int64N(int64(most)))):
	case <-ctx.Done():
	}
}

// trouble injects one fault, and ends it.
func (f *fleet) trouble(ctx context.Context) (string, error) {
	m := f.etcd.Members[f.random.IntN(len(f.etcd.Members))]
	if f.random.IntN(2) == 0 {
		m = f.etcd.Leader()
	}
	s := f.servers[f.random.IntN(len(f.servers))]
	how := []trouble{broken, silent}[f.random.IntN(2)]
	switch f.random.IntN(9) {
	case 0:
		s.process.Kill()
		return "a server killed", f.begin(s)
	case 1:
		if err := s.process.Stop(); err != nil {
			return "a server stopped", err
		}
		return "a server stopped", f.begin(s)
	case 8:
		s.signal(syscall.SIGSTOP)
		f.hold(ctx, 5*time.Second)
		s.signal(syscall.SIGCONT)
		return "a server frozen", nil
	case 2:
		m.Kill()
		f.hold(ctx, 3*time.Second)
		m.Begin()
		return "a member killed", nil
	case 3:
		m.Freeze()
		f.hold(ctx, 5*time.Second)
		m.Thaw()
		return "a member frozen", nil
	case 4:
		f.etcd.Isolate(m, how)
		f.hold(ctx, 5*time.Second)
		f.etcd.Heal()
		return "a member cut off from the others", nil
	case 5:
		way := s.ways[f.random.IntN(len(s.ways))]
		way.Cut(how)
		f.hold(ctx, 5*time.Second)
		way.Heal()
		return "a server cut off from a member", nil
	case 6:
		for _, way := range s.ways {
			way.Cut(how)
		}
		f.hold(ctx, 5*time.Second)
		for _, way := range s.ways {
			way.Heal()
		}
		return "a server cut off from all members", nil
	default:
		for _, m := range f.etcd.Members {
			m.Kill()
		}
		f.hold(ctx, 2*time.Second)
		for _, m := range f.etcd.Members {
			m.Begin()
		}
		return "all members killed", nil
	}
}

// recovered waits until all servers answer a consistent read.
func (f *fleet) recovered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, s := range f.servers {
		client, err := process.Client(s.process.Kubeconfig)
		if err != nil {
			return err
		}
		api := process.API{Client: client, URL: s.process.URL}
		for {
			err := api.Do(ctx, http.MethodGet, "/api/v1/namespaces/default", nil, nil)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("a server does not recover: %w", err)
			}
			if err := pause(ctx); err != nil {
				return err
			}
		}
		client.CloseIdleConnections()
	}
	return nil
}
