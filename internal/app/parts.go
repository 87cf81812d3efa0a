package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/anykind/anykind/internal/server"
)

// parts are goroutines with the life of the App.
type parts struct {
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	failed chan error // buffers the first failure
}

func newParts(log *slog.Logger) *parts {
	p := &parts{log: log, failed: make(chan error, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// before returns parts that can be stopped before these.
func (p *parts) before() *parts {
	b := &parts{log: p.log, failed: p.failed}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// run starts a part. A part that returns before it is stopped has failed. The returned check reports
// that.
func (p *parts) run(name string, part func(context.Context) error) server.Check {
	var mu sync.Mutex
	var ended error
	p.group.Go(func() {
		err := part(p.ctx)
		if p.ctx.Err() != nil {
			return
		}
		mu.Lock()
		ended = fmt.Errorf("%s has stopped", name)
		if err != nil && !errors.Is(err, context.Canceled) {
			ended = fmt.Errorf("%s: %w", name, err)
		}
		mu.Unlock()
		p.fail(ended)
	})
	return server.Check{Name: name, Run: func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		return ended
	}}
}

// fail reports that the App cannot continue.
func (p *parts) fail(err error) {
	p.log.Error("the server failed and stops", "error", err)
	select {
	case p.failed <- err:
	default: // The first failure is the cause of later ones.
	}
}

// stop stops all parts and waits for them.
func (p *parts) stop(context.Context) error {
	p.cancel()
	p.group.Wait()
	return nil
}
