package main

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/app"
)

// startRetry is the time between two attempts to start a server again.
const startRetry = time.Second

// stop stops a server within drainTime.
func stop(a *app.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return a.Stop(ctx)
}

// restart starts a server on a restored store. It retries until the server starts.
func restart(ctx context.Context, o app.Options) (*app.App, error) {
	for {
		a, err := app.Start(ctx, o)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
		o.Log.Error("the server does not start on the restored store; it retries", "error", err)
		select {
		case <-time.After(startRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
