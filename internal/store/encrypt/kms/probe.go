package kms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// pollWell and pollIll are the intervals of polls after a success and after a failure.
	pollWell = time.Minute
	pollIll  = 10 * time.Second
	// freshWell and freshIll are the times for which health checks share the result of a poll.
	freshWell = 20 * time.Second
	freshIll  = 3 * time.Second
)

// A probe is the result of the last poll of a plugin.
type probe struct {
	turn    chan struct{} // held by the reader or the writer of the others
	at      time.Time
	problem error
}

func newProbe() probe { return probe{turn: make(chan struct{}, 1)} }

// check polls by ask, or returns the result of a recent poll. healed receives after a failure has ended.
func (p *probe) check(ctx context.Context, ask func(context.Context) error, healed chan struct{}) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	fresh := freshWell
	if p.problem != nil {
		fresh = freshIll
	}
	if !p.at.IsZero() && time.Since(p.at) < fresh {
		return p.problem
	}
	// Others use the result, even if this caller has left.
	before := p.problem
	err := ask(context.WithoutCancel(ctx))
	p.problem, p.at = err, time.Now()
	if unanswered := (*unansweredError)(nil); errors.As(err, &unanswered) {
		p.problem = unanswered.err // kube-apiserver says more to the caller that has polled
	}
	if before != nil && err == nil {
		signal(healed)
	}
	return err
}

// pollUntil checks a plugin until ctx ends. err is the result of the last check.
func pollUntil(ctx context.Context, provider string, err error, check func(context.Context) error, log *slog.Logger) {
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
		err = check(ctx)
		if err != nil && (before == nil || err.Error() != before.Error()) && ctx.Err() == nil {
			log.Warn("a KMS plugin is not healthy", "provider", provider, "error", err)
		}
	}
}

// unansweredError is the error of a poll without an answer to one of its calls.
type unansweredError struct {
	call, provider string
	err            error
}

func (e *unansweredError) Error() string {
	return fmt.Sprintf("failed to perform %s section of the healthz check for KMS Provider %s, error: %v", e.call, e.provider, e.err)
}
