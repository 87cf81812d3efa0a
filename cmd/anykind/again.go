package main

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/app"
)

// startRetry is how long it waits before it starts again what did not start.
const startRetry = time.Second

func stop(a *app.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return a.Stop(ctx)
}

// startAgain starts a server on a store that was put back, as soon as it can be
// started, so that nobody has to.
func startAgain(ctx context.Context, o app.Options) (*app.App, error) {
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
