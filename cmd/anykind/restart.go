package main

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/app"
)

// startRetry is the time between two attempts to start a server again.
const startRetry = time.Second

// stop stops a server, for which it has as long as draining may take.
func stop(a *app.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return a.Stop(ctx)
}

// restart starts a server on a store that was put back. It tries until the server
// starts, so that nobody has to.
func restart(ctx context.Context, o app.Options) (*app.App, error) {
	for {
		a, err := app.Start(ctx, o)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
		o.Log.Error("the server does not start on what there is now; it tries again", "error", err)
		select {
		case <-time.After(startRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
