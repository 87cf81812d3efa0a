package etcdkv

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// An attempt is one call of etcd. gRPC reports when it puts the call on a connection. A call that
// never was on a connection has changed nothing, for any error.
type attempt struct{ sent atomic.Bool }

type attemptKey struct{}

// attempting returns a context for one call, and the attempt that the call belongs to.
func attempting(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

// An unsentError is the error of a call that never was on a connection.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// outcome marks the error of the call if it was not sent.
func (a *attempt) outcome(err error) error {
	if err == nil || a.sent.Load() {
		return err
	}
	return unsentError{err}
}

// sentStats notes in each attempt that its call was sent. It implements stats.Handler.
type sentStats struct{}

func (sentStats) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutHeader); !ok {
		return
	}
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		a.sent.Store(true)
	}
}

func (sentStats) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sentStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sentStats) HandleConn(context.Context, stats.ConnStats)                       {}
