package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/authz"
	"github.com/anykind/anykind/internal/authz/rbac"
	"github.com/anykind/anykind/internal/authz/rbac/defaults"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/server"
)

// The ways to decide who may do what.
const (
	AuthorizeByRoles = "RBAC"
	AllowAlways      = "AlwaysAllow"
	DenyAlways       = "AlwaysDeny"
)

// Authorization says how it is decided who may do what.
type Authorization struct {
	// Modes are asked in their order; empty is AuthorizeByRoles.
	Modes []string
}

// AuthorizationModes returns the modes there are.
func AuthorizationModes() []string { return []string{AuthorizeByRoles, AllowAlways, DenyAlways} }

// check returns what is wrong.
func (o Authorization) check() error {
	for i, mode := range o.Modes {
		if !slices.Contains(AuthorizationModes(), mode) {
			return fmt.Errorf("authorization-mode %q is not a valid mode", mode)
		}
		if slices.Contains(o.Modes[:i], mode) {
			return fmt.Errorf("authorization-mode %q has mode specified more than once", o.Modes)
		}
	}
	return nil
}

// authorizer returns what decides. The group system:masters may do everything whatever
// the modes say.
func (o Authorization) authorizer(byRoles *rbac.Authorizer) authz.Union {
	if len(o.Modes) == 0 {
		o.Modes = []string{AuthorizeByRoles}
	}
	all := authz.Union{{Name: authz.PrivilegedName, Authorizer: authz.Privileged{}}}
	for _, mode := range o.Modes {
		one := authz.Named{Name: strings.ToLower(mode), Authorizer: byRoles}
		switch mode {
		case AllowAlways:
			one.Authorizer = authz.AlwaysAllow{}
		case DenyAlways:
			one.Authorizer = authz.AlwaysDeny{}
		}
		all = append(all, one)
	}
	return all
}

// rolesCheck is what the health check of the default roles is called, as in Kubernetes.
const rolesCheck = "poststarthook/rbac/bootstrap-roles"

// rolesRetry is how long to wait before default roles that could not be written are tried
// again.
const rolesRetry = time.Second

// authorize has the authorizer read the roles, and makes the default ones. A server whose
// store takes no writes starts nevertheless, and goes on trying: it is not ready meanwhile.
func (w *wired) authorize(ctx context.Context, a *App, o Options, core *resource.Set) {
	a.byRoles.Read(w.cache, core)
	a.authorizer.Set(o.Authorization.authorizer(&a.byRoles))
	if core.Group(rbacv1.GroupName) == nil {
		return
	}
	var done atomic.Bool
	w.checks = append(w.checks, server.Check{Name: rolesCheck, Run: func(context.Context) error {
		if !done.Load() {
			return errors.New("not finished")
		}
		return nil
	}})
	roles := &defaultRoles{Objects: w.objects(serverManager, o.Log), set: core}
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

// objects are what is stored, for those who write in their own name.
func (w *wired) objects(manager string, log *slog.Logger) controller.Objects {
	return controller.Objects{
		Backend: w.backend, Catalog: w.catalog, Registry: w.registry, Refresh: w.crds.Fresh, Manager: manager, Logger: log,
	}
}

// defaultRoles writes the roles and bindings that every cluster has.
type defaultRoles struct {
	controller.Objects
	set *resource.Set
}

// ensure makes those that are missing, all at once, so that one write to disk is enough, and
// completes those that were changed.
func (r *defaultRoles) ensure(ctx context.Context) error {
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
	for _, o := range defaults.Objects() {
		d := r.set.Lookup(rbacv1.GroupName, o.Resource)
		found := stored[d.Key(object.Namespace(o.Tree), object.Name(o.Tree))]
		if !d.Served() || found != nil && o.IsIn(found) {
			continue
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
	return errors.Join(errs...)
}

// write makes an object, or completes it.
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
