package extension

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/watch"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "how long is written")
	every    = flag.Duration("every", 6*time.Second, "how often a server is killed, about")
	writers  = flag.Int("writers", 8, "how many write")
	watchers = flag.Int("watchers", 20, "how many watch")
	seed     = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

// Watches through the cluster are right, whichever of the two servers is killed under them.
func TestWatch(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	path, err := program.Anykind()
	must(t, err)
	c := startCluster(t, kubeAPIServers(t, path)["kube-apiserver"])
	r := &trouble{TB: t, cluster: c, extension: c.install(t, path), random: rand.New(rand.NewPCG(*seed, 0)), up: make(chan struct{})}
	close(r.up)
	watch.CustomResourcesOnly()
	watch.Check(t, watch.Options{
		Seed: *seed, Writers: *writers, Watchers: *watchers, Late: true,
		Client: r.client, Ready: r.wait, Disturb: r.disturb,
	})
	t.Logf("kube-apiserver was killed %d times, anykind %d times", r.killed[0], r.killed[1])
}

// A trouble is what befalls the two servers.
type trouble struct {
	testing.TB
	*cluster
	extension *extension
	random    *rand.Rand
	killed    [2]int

	mu sync.Mutex
	up chan struct{} // closed while both are there
}

// client is one of users of the cluster. Definitions it makes in anykind, and they are there when users
// of the cluster can reach their kind.
func (r *trouble) client() (process.API, error) {
	users, err := rest.HTTPClientFor(r.admin)
	if err != nil {
		return process.API{}, err
	}
	own, err := rest.HTTPClientFor(r.extension.admin)
	if err != nil {
		return process.API{}, err
	}
	host, err := url.Parse(r.extension.admin.Host)
	if err != nil {
		return process.API{}, err
	}
	route := func(q *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(q.URL.Path, "/apis/apiextensions.k8s.io/") {
			return users.Transport.RoundTrip(q)
		}
		q = q.Clone(q.Context())
		q.URL.Scheme, q.URL.Host = host.Scheme, host.Host
		answer, err := own.Transport.RoundTrip(q)
		if err == nil {
			eventually(r, "the cluster has the kind", r.reached)
		}
		return answer, err
	}
	return process.API{Client: &http.Client{Transport: roundTripper(route)}, URL: r.url}, nil
}

// reached returns nil if users of the cluster find the kinds that are made.
func (r *trouble) reached(context.Context) error {
	if code, body := status(r, r.admin, "/apis/check.example.com/v1"); code != http.StatusOK {
		return errors.New(body)
	}
	return nil
}

func (r *trouble) gate() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

// wait returns when both servers are there.
func (r *trouble) wait(ctx context.Context) error {
	select {
	case <-r.gate():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// disturb kills one server or the other and starts it again, until time is up.
func (r *trouble) disturb(ctx context.Context) error {
	over := time.After(*duration)
	for {
		next := time.NewTimer(*every/2 + time.Duration(r.random.Int64N(int64(*every))))
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			next.Stop()
			return nil
		case <-next.C:
		}
		r.mu.Lock()
		r.up = make(chan struct{})
		r.mu.Unlock()
		which := r.random.IntN(2)
		r.killed[which]++
		var err error
		if which == 0 {
			err = r.restart()
		} else {
			r.extension.server.Kill()
			err = r.extension.start("0.0.0.0:" + portOf(r.extension.server.Address()))
		}
		if err == nil {
			err = become(ctx, "the cluster reaches anykind", r.reached)
		}
		if err != nil {
			return err
		}
		close(r.gate())
	}
}
