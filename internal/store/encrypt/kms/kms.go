// Package kms encrypts values with keys that a KMS plugin protects, by version 2 of Kubernetes' protocol
// for them.
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
	// pollWell and pollIll are the intervals of polls after a success and after a failure.
	pollWell = time.Minute
	pollIll  = 10 * time.Second
	// trusted is the time after the last successful poll in which values are written. So a migration that
	// starts this long after a new key ID uses that key, or fails.
	trusted = 3 * time.Minute
	// freshWell and freshIll are the times for which health checks share the result of a poll.
	freshWell = 20 * time.Second
	freshIll  = 3 * time.Second
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

	seed  atomic.Pointer[seed] // nil before the first success
	seeds cache
	poll  poll

	stop context.CancelFunc
	run  sync.WaitGroup
}

// poll is the result of the last poll.
type poll struct {
	turn    chan struct{} // held by the reader or the writer of the others
	at      time.Time
	problem error
	version string // of the first answer
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
		seeds: newCache(s, o.Metrics, c.Name), poll: poll{turn: make(chan struct{}, 1)}}
}

// Timeout returns the timeout of a call.
func (p *Plugin) Timeout() time.Duration { return p.timeout }

// Start polls the plugin once, and then in the background until Close. A plugin that does not answer is
// no error: it may start later.
func (p *Plugin) Start(ctx context.Context) {
	err := p.Check(ctx)
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.run.Go(func() { p.pollUntil(ctx, err) })
	p.run.Go(func() { p.seeds.retryUntil(ctx, p.options.Readable) })
}

// Close ends the background work and the connection.
func (p *Plugin) Close() error {
	p.stop()
	err := p.service.close()
	p.run.Wait()
	return err
}

// pollUntil polls until ctx ends. err is the result of the last poll.
func (p *Plugin) pollUntil(ctx context.Context, err error) {
	for {
		pause, before := pollWell, err
		if err != nil {
			pause = pollIll
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		err = p.Check(ctx)
		if err != nil && (before == nil || err.Error() != before.Error()) && ctx.Err() == nil {
			p.options.Log.Warn("a KMS plugin is not healthy", "provider", p.name, "error", err)
		}
	}
}

// Check returns the problem of the plugin. It polls the plugin, or returns the result of a recent poll.
func (p *Plugin) Check(ctx context.Context) error {
	select {
	case p.poll.turn <- struct{}{}:
		defer func() { <-p.poll.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	fresh := freshWell
	if p.poll.problem != nil {
		fresh = freshIll
	}
	if !p.poll.at.IsZero() && time.Since(p.poll.at) < fresh {
		return p.poll.problem
	}
	// Others use the result, even if this caller has left.
	before := p.poll.problem
	err := p.ask(context.WithoutCancel(ctx))
	p.poll.problem, p.poll.at = err, time.Now()
	if unanswered := (*unansweredError)(nil); errors.As(err, &unanswered) {
		p.poll.problem = unanswered.err // kube-apiserver says more to the caller that has polled
	}
	if before != nil && err == nil {
		signal(p.seeds.healed)
	}
	return err
}

// unansweredError is the error of a poll without an answer.
type unansweredError struct {
	provider string
	err      error
}

func (e *unansweredError) Error() string {
	return fmt.Sprintf("failed to perform status section of the healthz check for KMS Provider %s, error: %v", e.provider, e.err)
}

// ask polls the plugin, and generates a seed for a new key ID. It needs the turn.
func (p *Plugin) ask(ctx context.Context) error {
	began := time.Now()
	s, err := p.service.status(ctx)
	if err != nil {
		return &unansweredError{p.name, err}
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
	case p.poll.version == "":
		p.poll.version = s.version
	case p.poll.version != s.version:
		errs = append(errs, fmt.Errorf("KMSv2 API version should not change after the initial status response version %s, got %s", p.poll.version, s.version))
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
		return nil, false, err
	}
	p.options.Metrics.used.see(fromStorage, p.name, o.keyID)
	plain, err = opener.open(o.data, data)
	s := p.seed.Load()
	return plain, s != nil && (o.keyID != s.keyID || o.kind != s.kind), err
}
