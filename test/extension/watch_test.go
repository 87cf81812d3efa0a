package extension

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/watch"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "time with writes")
	every    = flag.Duration("every", 6*time.Second, "approximate time between kills of a server")
	writers  = flag.Int("writers", 8, "number of writers")
	watchers = flag.Int("watchers", 20, "number of watchers")
	seed     = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

// Watches through the cluster stay consistent, whichever of the two servers is killed.
func TestWatch(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	path, err := program.Anykind()
	must(t, err)
	c := startCluster(t, kubeAPIServers(t, path)["kube-apiserver"])
	r := &both{TB: t, cluster: c, extension: c.install(t, path), random: rand.New(rand.NewPCG(*seed, 0))}
	trouble := &watch.Trouble{Lasts: *duration, Every: *every, Random: r.random, Strike: r.strike}
	watch.CustomResourcesOnly()
	watch.Check(t, watch.Options{
		Seed: *seed, Writers: *writers, Watchers: *watchers, Late: true,
		Client: r.client, Ready: trouble.Wait, Disturb: trouble.Disturb,
	})
	t.Logf("kube-apiserver was killed %d times, anykind %d times", r.killed[0], r.killed[1])
}

// both are the two servers.
type both struct {
	testing.TB
	*cluster
	extension *extension
	random    *rand.Rand
	killed    [2]int
}

// client returns a client of the cluster's users. It creates definitions in anykind, and waits until
// users of the cluster can reach their kind.
func (r *both) client() (process.API, error) {
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

// reached returns nil if users of the cluster can reach the new kinds.
func (r *both) reached(context.Context) error {
	if code, body := status(r, r.admin, "/apis/check.example.com/v1"); code != http.StatusOK {
		return errors.New(body)
	}
	return nil
}

// strike kills one of the servers at random and starts it again.
func (r *both) strike(ctx context.Context) error {
	which := r.random.IntN(2)
	r.killed[which]++
	var err error
	if which == 0 {
		err = r.restart()
	} else {
		r.extension.server.Kill()
		err = r.extension.start("0.0.0.0:" + portOf(r.extension.server.Address()))
	}
	if err != nil {
		return err
	}
	return become(ctx, "the cluster reaches anykind", r.reached)
}
