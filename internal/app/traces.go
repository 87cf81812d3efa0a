package app

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/network/otlp"
)

// closeTime limits the export of the last spans, since the collector may be down.
const closeTime = 5 * time.Second

// openTraces opens the export of traces, if it is configured.
func (a *App) openTraces(ctx context.Context, c *otlp.Configuration) (err error) {
	if c == nil {
		return nil
	}
	a.traces, err = otlp.Open(ctx, c, otlp.Options{Instance: serverID(), Dial: a.egress.Dial(selector.ControlPlane), Log: a.log})
	if err != nil {
		return err
	}
	a.later(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, closeTime)
		defer cancel()
		a.traces.Close(ctx)
		return nil
	})
	return nil
}
