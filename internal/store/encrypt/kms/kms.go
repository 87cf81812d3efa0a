// Package kms encrypts values with keys that a KMS plugin protects, by the versions of Kubernetes' protocol
// for them: a Plugin by version 2, and an Envelope by version 1, which Kubernetes keeps for old data.
//
// A Plugin generates a seed, has the KMS encrypt it, and derives a key from the seed for each value. The
// encrypted seed is stored with each value. A stored value needs one call of the KMS for its seed, whose
// result is cached. The status of the KMS is polled: a new key ID leads to a new seed. The stored bytes
// are those of kube-apiserver.
//
// A seed that the KMS could not decrypt is decrypted again in the background. Until then, its values are
// unreadable, and no reader waits.
//
// The package knows bytes and the data that encryption authenticates. It does not know keys of a store,
// objects, or the other providers of a configuration.
package kms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

const (
	// trusted is the time after the last successful poll in which values are written. So a migration that
	// starts this long after a new key ID uses that key, or fails.
	trusted = 3 * time.Minute
	// retryFirst and retryMost limit the interval at which seeds that failed are decrypted again.
	retryFirst = time.Second
	retryMost  = 10 * time.Second
)

// Options of a Plugin.
type Options struct {
	Metrics *Metrics
	Log     *slog.Logger
	// Readable is called when values that Open could not read can be read.
	Readable func()
}

// A service is the API of a KMS plugin. Each call has a timeout.
type service interface {
	status(ctx context.Context) (status, error)
	encrypt(ctx context.Context, uid string, plain []byte) (source, error)
	decrypt(ctx context.Context, uid string, s *source) ([]byte, error)
	close() error
}

// status is the answer to a poll.
type status struct{ version, health, keyID string }

// A Plugin encrypts with one KMS plugin.
type Plugin struct {
	name    string
	timeout time.Duration
	service service
	options Options

	seed    atomic.Pointer[seed] // nil before the first success
	seeds   cache
	probe   probe
	version string // of the first answer to a poll; needs the turn of the probe

	stop context.CancelFunc
	run  sync.WaitGroup
}

// Open returns a Plugin of a configuration. It makes no calls before Start.
func Open(c *apiserver.KMSConfiguration, o Options) (*Plugin, error) {
	s, err := dial(c, o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("could not configure KMSv2-Plugin's probe %q, error: %w", c.Name, err)
	}
	return newPlugin(c, s, o), nil
}

func newPlugin(c *apiserver.KMSConfiguration, s service, o Options) *Plugin {
	return &Plugin{name: c.Name, timeout: c.Timeout.Duration, service: s, options: o, stop: func() {},
		seeds: newCache(s, o.Metrics, -1, func(n int) { o.Metrics.cached.WithLabelValues(c.Name).Set(float64(n)) }), probe: newProbe()}
}

// Timeout returns the timeout of a call.
func (p *Plugin) Timeout() time.Duration { return p.timeout }

// Start polls the plugin once, and then in the background until Close. A plugin that does not answer is
// no error: it may start later.
func (p *Plugin) Start(ctx context.Context) {
	err := p.Check(ctx)
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.run.Go(func() { pollUntil(ctx, p.name, err, p.Check, p.options.Log) })
	p.run.Go(func() { p.seeds.retryUntil(ctx, p.options.Readable) })
}

// Close ends the background work and the connection.
func (p *Plugin) Close() error {
	p.stop()
	err := p.service.close()
	p.run.Wait()
	return err
}

// Check returns the problem of the plugin. It polls the plugin, or returns the result of a recent poll.
func (p *Plugin) Check(ctx context.Context) error { return p.probe.check(ctx, p.ask, p.seeds.healed) }

// ask polls the plugin, and generates a seed for a new key ID. It needs the turn.
func (p *Plugin) ask(ctx context.Context) error {
	began := time.Now()
	s, err := p.service.status(ctx)
	if err != nil {
		return &unansweredError{"status", p.name, err}
	}
	errs := []error{p.checkStatus(s)}
	if code, err := checkKeyID(s.keyID); err != nil {
		p.options.Metrics.invalidKeyID.WithLabelValues(p.name, code).Inc()
		errs = append(errs, fmt.Errorf("got invalid KMSv2 KeyID hash %q: %w", Sum(s.keyID), err))
	} else {
		p.options.Metrics.polled.see("", p.name, s.keyID)
		errs = append(errs, p.rotate(ctx, s.keyID, began.Add(trusted)))
	}
	if err := utilerrors.Reduce(utilerrors.NewAggregate(errs)); err != nil {
		return fmt.Errorf("kmsv2 Provider %s is not healthy, error: %w", p.name, err)
	}
	return nil
}

func (p *Plugin) checkStatus(s status) error {
	var errs []error
	if s.health != "ok" {
		errs = append(errs, fmt.Errorf("got unexpected healthz status: %s", s.health))
	}
	switch {
	case s.version != "v2" && s.version != "v2beta1":
		errs = append(errs, fmt.Errorf("expected KMSv2 API version v2, got %s", s.version))
	case p.version == "":
		p.version = s.version
	case p.version != s.version:
		errs = append(errs, fmt.Errorf("KMSv2 API version should not change after the initial status response version %s, got %s", p.version, s.version))
	}
	return utilerrors.NewAggregate(errs)
}

// errNoSeed is the error of a write before the first successful poll.
var errNoSeed = errors.New("the KMS plugin has not answered yet")

// Seal appends the encrypted value to dst. data is authenticated.
func (p *Plugin) Seal(dst, plain, data []byte) ([]byte, error) {
	s := p.seed.Load()
	if s == nil {
		return nil, fmt.Errorf("KMS provider %s: %w", p.name, errNoSeed)
	}
	if now := time.Now(); now.After(s.expires) {
		return nil, fmt.Errorf("encryptedDEKSource with keyID hash %q expired at %s (current time is %s)",
			Sum(s.source.keyID), s.expires.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	p.options.Metrics.used.see(toStorage, p.name, s.source.keyID)
	return appendObject(dst, &object{source: s.source, data: s.derived.seal(plain, data)}), nil
}

// Open returns the plain value. stale reports that Seal would use another key ID.
func (p *Plugin) Open(ctx context.Context, sealed, data []byte) (plain []byte, stale bool, err error) {
	o, err := parseObject(sealed)
	if err != nil {
		return nil, false, err
	}
	opener, err := p.seeds.get(ctx, &o.source)
	if err != nil {
		return nil, false, fmt.Errorf("failed to decrypt DEK, error: %w", err)
	}
	p.options.Metrics.used.see(fromStorage, p.name, o.keyID)
	plain, _, err = opener.open(o.data, data)
	s := p.seed.Load()
	return plain, s != nil && (o.keyID != s.keyID || o.kind != s.kind), err
}
