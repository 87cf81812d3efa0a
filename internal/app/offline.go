package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// offlinePast is the size of an Offline's history in bytes. It has no watches.
const offlinePast = 4 << 20

// NeedsOthers returns the admission plugins that depend on other objects. An Offline has none of
// those objects, and disables the plugins.
func NeedsOthers() []string {
	return []string{"NamespaceLifecycle", "ServiceAccount", "PodSecurity", "Priority", "RuntimeClass", "PersistentVolumeClaimResize"}
}

// errOffline is the error of every webhook call.
var errOffline = errors.New("webhooks are not called offline")

// OfflineOptions configures an Offline.
type OfflineOptions struct {
	RuntimeConfig   builtin.RuntimeConfig
	Gates           *gate.Set
	AllowPrivileged bool
}

// An Offline handles requests for objects inside the process. It is the handler behind the filters
// of a server, with a store in memory. It has no listener and no controllers, allows every request,
// and needs no namespaces.
type Offline struct {
	app     App
	wired   *wired
	handler *rest.Handler
}

// NewOffline returns an empty Offline.
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
	// The store has objects of another server, which may violate their schemas.
	o := Options{
		Backend: a.backend, Log: a.log, RuntimeConfig: given.RuntimeConfig, Gates: given.Gates, AllowPrivileged: given.AllowPrivileged,
		Admission: Admission{Disable: NeedsOthers()},
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
	f.handler = rest.New(f.wired.registry, f.wired.catalog, rest.Options{Refresh: f.wired.crds.Fresh, Gates: o.Gates})
	if err := a.until(ctx, f.wired.crds.Fresh); err != nil {
		return err
	}
	f.wired.server.CIDRs = f.wired.services.cidrs
	return f.wired.ensureRange(ctx, f.wired.core) // needed to allocate addresses of Services
}

// ServeHTTP handles a request of the administrator.
func (f *Offline) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request.Request{Info: request.Parse(r), User: &request.User{Name: "anykind", Groups: []string{request.Masters, request.Authenticated}}}
	f.handler.ServeHTTP(w, r.WithContext(request.With(r.Context(), q)))
}

// Definitions returns all served kinds.
func (f *Offline) Definitions() *resource.Set { return f.wired.catalog.Set() }

// Put stores a value unchanged, and replaces the previous one. Nil deletes the key.
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

// Stop stops the Offline.
func (f *Offline) Stop(ctx context.Context) error { return f.app.unwind(ctx) }
