package published

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/server/aggregate"
)

const (
	refresh    = time.Minute            // age after which a page is requested again
	old        = 2 * time.Minute        // age after which a client waits for the new page
	firstRetry = 500 * time.Millisecond // after a failure; doubled after each, up to refresh
)

var (
	errUnavailable = errors.New("the service is unavailable")
	errSilent      = errors.New("the service has not answered yet")
)

// A shelf caches one page of each Backend.
type shelf[T any] struct {
	idle    time.Duration
	longest time.Duration // limit for fetch
	// anyway requests pages of unavailable Backends too. No client waits for those.
	anyway bool
	// fetch requests a page. before and etag are its previous result; it returns before if the
	// page has not changed.
	fetch func(ctx context.Context, services []*aggregate.Service, before T, etag string) (value T, now string, err error)

	mu    sync.Mutex
	pages map[place]*page[T]
	timer *time.Timer
}

// A page is a cached answer of a Backend. The shelf's mu guards it.
type page[T any] struct {
	value    T // the last successful one
	has      bool
	etag     string
	err      error // of the last request
	failures int

	requestedAt time.Time // start of the last request
	asking      chan struct{}
	of          map[*aggregate.Service]bool // services of the last request
	used        time.Time
}

// get returns the page of the Backend of services. It waits, up to timeout, only if the cached
// page is missing or too old. With an error, the value is the previous one, if any.
func (s *shelf[T]) get(ctx context.Context, services []*aggregate.Service, timeout time.Duration) (value T, has bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.page(placeOf(services[0].Backend))
	now := time.Now()
	p.used = now
	if !available(services) {
		if !s.anyway {
			return p.value, p.has, errUnavailable
		}
		timeout = 0
	}
	if p.asking == nil && p.due(now, services) {
		s.ask(p, now, services)
	}
	if p.asking != nil && !p.fit(now, services) {
		left := timeout - now.Sub(p.requestedAt)
		asking := p.asking
		s.mu.Unlock()
		wait(ctx, asking, left)
		s.mu.Lock()
	}
	if p.asking != nil && !p.fit(now, services) {
		return p.value, p.has, errSilent
	}
	return p.value, p.has, p.err
}

func wait(ctx context.Context, done <-chan struct{}, longest time.Duration) {
	enough := time.NewTimer(longest)
	defer enough.Stop()
	select {
	case <-done:
	case <-enough.C:
	case <-ctx.Done():
	}
}

// page returns the page of a Backend; it may be empty.
func (s *shelf[T]) page(at place) *page[T] {
	p := s.pages[at]
	if p == nil {
		if s.pages == nil {
			s.pages = map[place]*page[T]{}
		}
		p = &page[T]{}
		s.pages[at] = p
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(s.idle, s.sweep)
	}
	return p
}

// sweep drops pages that were not used for idle.
func (s *shelf[T]) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := time.Now().Add(-s.idle)
	maps.DeleteFunc(s.pages, func(_ place, p *page[T]) bool { return p.asking == nil && !p.used.After(before) })
	if len(s.pages) == 0 {
		s.pages, s.timer = nil, nil
		return
	}
	s.timer.Reset(s.idle)
}

// about reports whether the last request was for all these services, unchanged.
func (p *page[T]) about(services []*aggregate.Service) bool {
	for _, s := range services {
		if !p.of[s] {
			return false
		}
	}
	return true
}

// due reports whether the page must be requested again.
func (p *page[T]) due(now time.Time, services []*aggregate.Service) bool {
	pause := refresh
	if p.err != nil {
		pause = min(firstRetry<<min(p.failures-1, 10), refresh)
	}
	return !p.about(services) || now.Sub(p.requestedAt) >= pause
}

// fit reports whether the cached page serves while a request is in flight. It does if it is not
// too old, or if the last request failed: a client does not wait for a failing Backend twice.
func (p *page[T]) fit(now time.Time, services []*aggregate.Service) bool {
	if !p.about(services) {
		return false
	}
	if p.asking != nil && !p.has && p.failures == 0 {
		return false
	}
	return p.failures > 0 || now.Sub(p.requestedAt) < old
}

// ask starts a request. Callers wait for p.asking.
func (s *shelf[T]) ask(p *page[T], now time.Time, services []*aggregate.Service) {
	changed := !p.about(services)
	if changed {
		p.failures = 0
	}
	since := p.requestedAt
	done := make(chan struct{})
	p.asking, p.requestedAt = done, now
	before, etag := p.value, p.etag
	of := map[*aggregate.Service]bool{}
	for _, one := range services {
		of[one] = true
	}
	if changed || now.Sub(since) >= old && p.failures == 0 {
		p.of = nil // so that callers wait for it
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.longest)
		defer cancel()
		value, etag, err := s.fetch(ctx, services, before, etag)
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(done)
		p.asking, p.of, p.err = nil, of, err
		if err != nil {
			p.failures++
			return
		}
		p.value, p.etag, p.has, p.failures = value, etag, true, 0
	}()
}
