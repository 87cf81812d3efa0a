package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/history"
	"github.com/anykind/anykind/internal/store/kv"
)

// Remembering configures the history of a store in a data directory.
type Remembering struct {
	On bool
	// Keep is the time for which states are kept; 0 is forever.
	Keep time.Duration
	// MaxBytes limits the file of the history: the oldest states go first. 0 is no limit.
	MaxBytes int64
	// Intervals are resources of whose objects only the last state of each interval is kept.
	Intervals map[schema.GroupResource]time.Duration

	recent time.Duration // of the states outside the file; 0 is History
}

// check returns the error for a store that cannot have a history.
func (r Remembering) check(o Options) error {
	switch {
	case !r.On && len(r.Intervals) > 0:
		return errors.New("--history-interval needs --history: without a history, all states of five minutes are kept")
	case !r.On:
		return nil
	case o.Open != "":
		return errors.New("--history and --open are mutually exclusive: an opened file does not change")
	case len(o.Etcd.Servers) > 0:
		return errors.New("--history needs a store in --data-dir: leave out --etcd-servers or --history")
	case o.InMemory:
		return errors.New("--history needs a store in --data-dir: leave out --in-memory or --history")
	case o.Backend != nil, o.Dir == "":
		return errors.New("a history needs a store in a data directory: set Options.Dir, or leave out Options.History")
	}
	return nil
}

// open opens the history of a store. keys encrypt it; nil for none. After an error, the store is closed.
func (r Remembering) open(below kv.Backend, keys *encrypt.Keyring, o Options) (kv.Backend, error) {
	if !r.On {
		return below, nil
	}
	every, err := r.every(builtin.Stored(o.Gates))
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	options := history.Options{Every: every, Keep: r.Keep, MaxBytes: r.MaxBytes, Recent: cmp.Or(r.recent, History), Logger: o.Log}
	if keys != nil {
		options.Seal = keys
	}
	b, err := history.Open(below, o.Dir, options)
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return b, nil
}

// every returns the interval of a key; 0 for all states. The kinds are the built-in ones.
func (r Remembering) every(kinds []*resource.Definition) (func(key string) time.Duration, error) {
	if len(r.Intervals) == 0 {
		return nil, nil
	}
	byPrefix := map[string]time.Duration{}
	builtIn := func(group string) bool {
		return slices.ContainsFunc(kinds, func(d *resource.Definition) bool { return d.Group == group })
	}
	for of, interval := range r.Intervals {
		prefix := resource.CustomPrefix(of.Group, of.Resource)
		i := slices.IndexFunc(kinds, func(d *resource.Definition) bool { return d.GroupResource() == of })
		switch {
		case i >= 0:
			prefix = kinds[i].StoragePrefix
		case of.Group == "" || builtIn(of.Group):
			return nil, fmt.Errorf("--history-interval: Invalid value: %q: no built-in resource has this name; a custom one is RESOURCE.GROUP", of)
		}
		if of.Group == rbacv1.GroupName {
			return nil, fmt.Errorf("--history-interval: Invalid value: %q: all states of roles and bindings are kept, because they decide about reads of the history", of)
		}
		if other, ok := byPrefix[prefix]; ok && other != interval {
			return nil, fmt.Errorf("--history-interval: Invalid value: %q: its objects are those of another resource with the interval %v", of, other)
		}
		byPrefix[prefix] = interval
	}
	return func(key string) time.Duration {
		for prefix, interval := range byPrefix {
			if strings.HasPrefix(key, prefix) {
				return interval
			}
		}
		return 0
	}, nil
}

// rightsThen returns a check that the user of a request had the right for it at a revision, too; nil without a
// history. Present rights that do not come from RBAC are enough.
func (w *wired) rightsThen(a *App) func(ctx context.Context, revision int64) error {
	if _, ok := kv.As[kv.Historian](w.backend); !ok {
		return nil
	}
	past := rbac.NewPast(w.backend, w.core)
	return func(ctx context.Context, revision int64) error {
		q := request.From(ctx)
		if q == nil || !a.byRolesOnly(ctx, q.User, &q.Info) {
			return nil
		}
		state, err := past.At(ctx, revision)
		if err != nil {
			return registry.StorageError(err)
		}
		return deniedBy(ctx, state, &authz.Attributes{User: q.User, Info: q.Info})
	}
}

// deniedBy returns the Forbidden error of the roles of an earlier state, or nil.
func deniedBy(ctx context.Context, roles authz.Authorizer, asked *authz.Attributes) error {
	decision, reason, _ := roles.Authorize(ctx, asked)
	if decision == authz.Allow {
		return nil
	}
	return authz.Forbidden(asked, lacked(reason))
}

// byRolesOnly reports whether a right of a user comes from RBAC. Other authorizers have no past.
func (a *App) byRolesOnly(ctx context.Context, user *request.User, asked *request.Info) bool {
	if user.In(request.Masters) || !a.chain.Asks(chain.RBAC) {
		return false
	}
	decision, _, _ := a.byRoles.Authorize(ctx, &authz.Attributes{User: user, Info: *asked})
	return decision == authz.Allow
}

// lacked is the reason for which the rights of an earlier time are not enough.
func lacked(reason string) string {
	const then = "the rights at the time of that state did not allow it"
	if reason == "" {
		return then
	}
	return then + ": " + reason
}
