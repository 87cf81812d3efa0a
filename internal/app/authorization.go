package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/abac"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/access/authz/rbac/defaults"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/server/aggregate/remote"
	"github.com/anykind/anykind/internal/store/kv"
)

// AuthorizeByRoles is the default authorization mode.
const AuthorizeByRoles = chain.RBAC

// AllowAlways is the default authorization mode of kube-apiserver.
const AllowAlways = chain.AlwaysAllow

// Authorization configures authorizers, as the flags of kube-apiserver do.
type Authorization struct {
	chain.Flags
	// ConfigFile is an AuthorizationConfiguration, in place of the Flags.
	ConfigFile string
}

// AuthorizationModes returns all authorization modes.
func AuthorizationModes() []string { return chain.Types() }

// config returns the configuration from the file or the flags.
func (o *Authorization) config() (*chain.Config, error) {
	switch {
	case o.ConfigFile == "":
		return o.Flags.Config()
	case o.Given:
		return nil, errors.New("--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined")
	default:
		return chain.Load(o.ConfigFile)
	}
}

// newChain creates the authorizers of a configuration. Those that read the store do so later.
func (a *App) newChain(o Options, c *chain.Config) (err error) {
	byType := map[string]authz.Authorizer{chain.RBAC: &a.byRoles, chain.Node: &a.byNodes}
	if c.Asks(chain.ABAC) {
		if byType[chain.ABAC], err = abac.Load(o.Authorization.PolicyFile); err != nil {
			return err
		}
	}
	a.chain, err = chain.New(c, chain.Options{
		ByType: byType,
		Dial:   a.dialer(selector.ControlPlane).DialContext, Server: serverID(), Log: o.Log,
	})
	if err == nil {
		a.later(func(context.Context) error { a.chain.Close(); return nil })
	}
	return err
}

// rolesRetry is the pause between attempts to write the default roles.
const rolesRetry = time.Second

// authorize makes the authorizers follow the store.
func (w *wired) authorize(a *App, gates *gate.Set) {
	a.byRoles.Read(w.cache, w.core)
	a.byNodes.Read(w.cache, w.core, gates)
	a.authorizer.Set(a.chain)
	if a.chain.IsFile() {
		a.parts.run("authorizationconfiguration", func(ctx context.Context) error {
			a.chain.Follow(ctx)
			return nil
		})
	}
}

// ensureRoles writes the default roles. If the store rejects writes, the server starts all the same and
// retries: it is not ready meanwhile.
func (w *wired) ensureRoles(ctx context.Context, a *App, o Options) {
	if w.core.Group(rbacv1.GroupName) == nil || o.Cluster.Authorization.File != "" {
		return
	}
	var done atomic.Bool
	w.health.roles = func(context.Context) error {
		if !done.Load() {
			return errors.New("not finished")
		}
		return nil
	}
	roles := &defaultRoles{Objects: w.objects(apply.Server, o.Log), set: w.core, gates: o.Gates, whole: o.From.hasRoles()}
	err := roles.ensure(ctx)
	if done.Store(err == nil); err == nil {
		return
	}
	a.parts.run("defaultroles", func(ctx context.Context) error {
		for err != nil {
			o.Log.Warn("the default roles could not be written", "error", err)
			select {
			case <-time.After(rolesRetry):
			case <-ctx.Done():
				return nil
			}
			err = roles.ensure(ctx)
		}
		done.Store(true)
		<-ctx.Done()
		return nil
	})
}

// objects returns access to stored objects for controllers, under a field manager.
func (w *wired) objects(manager string, log *slog.Logger) controller.Objects {
	return controller.Objects{
		Backend: w.backend, Catalog: w.catalog, Registry: w.registry, Refresh: w.crds.Fresh, Manager: manager, Logger: log,
		Aggregated: remote.New(w.others, w.published, w.peers, log),
	}
}

// defaultRoles writes the default roles and bindings.
type defaultRoles struct {
	controller.Objects
	set   *resource.Set
	gates *gate.Set
	whole *atomic.Bool // all objects are complete; set after the first check
}

// ensure creates missing objects concurrently, so that one write to disk is enough, and completes
// modified ones.
func (r *defaultRoles) ensure(ctx context.Context) error {
	if r.whole.Load() {
		return nil
	}
	stored := map[string][]byte{}
	for _, d := range r.set.Group(rbacv1.GroupName).Definitions {
		if err := r.Pages(ctx, d.StoragePrefix, func(p kv.Page) {
			for _, record := range p.Records {
				stored[record.Key] = record.Value
			}
		}); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var errs []error
	var group sync.WaitGroup
	whole := true
	for _, o := range defaults.Objects(r.gates) {
		d := r.set.Lookup(rbacv1.GroupName, o.Resource)
		found := stored[d.Key(object.Namespace(o.Tree), object.Name(o.Tree))]
		if found != nil && o.IsIn(found) {
			continue
		}
		if whole = false; !d.Served() {
			continue
		}
		if before := stored[d.Key("", o.Before())]; found == nil && o.Before() != "" && before != nil {
			o.Inherit(before)
		}
		group.Go(func() {
			if err := r.write(ctx, d, &o, found != nil); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s %s: %w", d.Singular, object.Name(o.Tree), err))
			}
		})
	}
	group.Wait()
	r.whole.Store(whole)
	return errors.Join(errs...)
}

// write creates or completes an object.
func (r *defaultRoles) write(ctx context.Context, d *resource.Definition, o *defaults.Object, exists bool) error {
	namespace, name := object.Namespace(o.Tree), object.Name(o.Tree)
	key := d.Key(namespace, name)
	if exists {
		found, err := r.Read(ctx, key)
		if err != nil {
			return err
		}
		if found != nil {
			outcome := defaults.Keep
			err := r.Change(ctx, d, key, found.UID, "", func(t object.Tree) bool {
				outcome = o.Reconcile(t)
				return outcome == defaults.Update
			})
			if err != nil || outcome != defaults.Replace {
				return err
			}
			if err := r.Delete(ctx, d, key, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(found.UID)}); err != nil {
				return err
			}
		}
	}
	return r.Create(ctx, d, namespace, object.CloneTree(o.Tree))
}
