package envtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/internal/app"
	apiserver "github.com/anykind/anykind/internal/server"
)

// A Fork is a copy of a running server, with everything that the server has at this moment. It starts in a
// millisecond and shares objects with the server until one of the two changes them. Neither sees the
// changes of the other.
//
// The controllers of the Environment run in it, too. It has no network: webhooks are not called.
type Fork struct {
	// Config is the client configuration of the administrator for the Fork.
	Config *rest.Config

	copy *app.Fork
	end  func(context.Context) error
}

// forks counts the Forks of all Environments, for their names.
var forks atomic.Int64

// Fork returns a copy of the server. Stop of the Environment stops it.
func (te *Environment) Fork() (*Fork, error) {
	if te.server == nil {
		return nil, errNotStarted
	}
	all := te.server.app.Forks()
	made, copied, err := all.Make(context.Background(), &apiserver.ForkSpec{Name: fmt.Sprintf("test-%d", forks.Add(1)), Webhooks: apiserver.WebhooksNone}, "")
	if err != nil {
		return nil, err
	}
	f := &Fork{Config: rest.CopyConfig(te.Config), copy: copied.(*app.Fork)}
	f.Config.Host += made.Path
	f.end = func(ctx context.Context) error { return all.Delete(ctx, made.Name) }
	return f, nil
}

// ForkFor returns a copy of the server until the end of the test.
func (te *Environment) ForkFor(t testing.TB) *Fork {
	t.Helper()
	f, err := te.Fork()
	if err != nil {
		t.Fatalf("making a fork: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Errorf("stopping a fork: %v", err)
		}
	})
	return f
}

// WaitIdle waits until the controllers of the Fork have handled all writes, and each watch has received all events.
func (f *Fork) WaitIdle(ctx context.Context) error { return f.copy.WaitIdle(ctx) }

// Stop ends the Fork. A second call does nothing.
func (f *Fork) Stop() error {
	if f.end == nil {
		return nil
	}
	end := f.end
	f.end = nil
	return end(context.Background())
}
