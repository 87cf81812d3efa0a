package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// offlinePast is how many bytes of what is no longer stored an Offline keeps. Nobody watches it.
const offlinePast = 4 << 20

// needsOthers returns the admission plugins that refuse or change an object because of other
// objects, or because these are missing. An Offline has none of these, and does not ask the plugins.
func needsOthers() []string {
	return []string{"NamespaceLifecycle", "ServiceAccount", "PodSecurity", "Priority", "RuntimeClass", "PersistentVolumeClaimResize"}
}

// errOffline is why no webhook answers.
var errOffline = errors.New("webhooks are not called offline")

// OfflineOptions say what an Offline serves.
type OfflineOptions struct {
	RuntimeConfig   builtin.RuntimeConfig
	AllowPrivileged bool
}

// An Offline answers the requests for objects of the program that it is part of, as the handler
// behind the filters of a server does: it is that handler, over a store in memory. It listens
// nowhere and runs no controllers, everything is allowed, and namespaces need not exist.
type Offline struct {
	app     App
	wired   *wired
	handler *rest.Handler
}

// NewOffline returns an Offline with nothing stored.
func NewOffline(ctx context.Context, o OfflineOptions) (*Offline, error) {
	f := &Offline{}
	if err := f.start(ctx, o); err != nil {
		return nil, errors.Join(err, f.app.unwind(ctx))
	}
	return f, nil
}

func (f *Offline) start(ctx context.Context, given OfflineOptions) error {
	a := &f.app
	a.log = slog.New(slog.DiscardHandler)
	a.backend = memkv.New(memkv.Options{MaxPastBytes: offlinePast})
	// What is stored is of somebody else: nothing says that it has the form that its schema asks for.
	o := Options{
		Backend: a.backend, Log: a.log, RuntimeConfig: given.RuntimeConfig, AllowPrivileged: given.AllowPrivileged,
		Admission: Admission{Disable: needsOthers()},
		Hooks:     Hooks{Webhook: func(context.Context) error { return errOffline }},
	}
	a.later(func(context.Context) error { return a.backend.Close() })
	_, kinds, err := a.prepare(o)
	if err != nil {
		return err
	}
	a.parts = newParts(o.Log)
	a.later(a.parts.stop)
	a.authorizer.Set(authz.AlwaysAllow{})
	if f.wired, err = a.assemble(o, kinds); err != nil {
		return err
	}
	a.parts.run("watchcache", f.wired.cache.Run)
	a.parts.run("customresourcedefinitions", f.wired.crds.Run)
	f.handler = rest.New(f.wired.registry, f.wired.catalog, rest.Options{Refresh: f.wired.crds.Fresh})
	if err := a.until(ctx, f.wired.crds.Fresh); err != nil {
		return err
	}
	f.wired.server.CIDRs = f.wired.services.cidrs
	return f.wired.ensureRange(ctx, f.wired.core) // or no Service would get an address
}

// ServeHTTP answers a request of the administrator.
func (f *Offline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request.Request{Info: request.Parse(r), User: &request.User{Name: "anykind", Groups: []string{request.Masters, request.Authenticated}}}
	f.handler.ServeHTTP(w, r.WithContext(request.With(r.Context(), q)))
}

// Definitions are those of all kinds that are served now.
func (f *Offline) Definitions() *resource.Set { return f.wired.catalog.Set() }

// Put stores a value as it is, whatever was there. Nil deletes what was there.
func (f *Offline) Put(ctx context.Context, key string, value []byte) error {
	for {
		w := kv.Write{Key: key, Value: value}
		stored, err := f.app.backend.Get(ctx, key, kv.Latest)
		switch {
		case err == nil:
			w.Expect = stored.Revision
		case !errors.Is(err, kv.ErrNotFound):
			return err
		case value == nil:
			return nil
		}
		var conflict *kv.ConflictError
		if _, err = f.app.backend.Commit(ctx, w); !errors.As(err, &conflict) {
			return err
		}
	}
}

// Stop ends the Offline.
func (f *Offline) Stop(ctx context.Context) error { return f.app.unwind(ctx) }
