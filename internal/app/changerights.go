package app

import (
	"context"
	"errors"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
)

// changeRights are the rights of the user of one request to changes. It implements rest.ChangeRights.
type changeRights struct {
	app       *App
	user      *request.User
	past      *rbac.Past
	historian kv.Historian

	byRoles map[request.Info]bool // whether a right comes from RBAC
	roles   *rbac.Rewind          // nil until a decision needs it
	undo    []kv.Logged           // changes of roles and bindings that roles still has
	then    map[request.Info]bool // decisions of roles
}

// changeRights returns a function for the rights of the user of a request.
func (w *wired) changeRights(a *App) func(context.Context) rest.ChangeRights {
	past := rbac.NewPast(w.backend, w.core)
	historian, _ := kv.As[kv.Historian](w.backend)
	return func(ctx context.Context) rest.ChangeRights {
		return &changeRights{app: a, user: request.UserFrom(ctx), past: past, historian: historian, byRoles: map[request.Info]bool{}, then: map[request.Info]bool{}}
	}
}

// List implements rest.ChangeRights.
func (c *changeRights) List(ctx context.Context, asked *request.Info) (bool, error) {
	decision, _, err := c.app.authorizer.Authorize(ctx, &authz.Attributes{User: c.user, Info: *asked})
	switch {
	case decision == authz.Allow:
		return true, nil
	case err != nil:
		return false, status.Internal(err)
	default:
		return false, nil
	}
}

// ListedAt implements rest.ChangeRights.
func (c *changeRights) ListedAt(ctx context.Context, asked *request.Info, revision int64) (bool, error) {
	byRoles, known := c.byRoles[*asked]
	if !known {
		byRoles = c.app.byRolesOnly(ctx, c.user, asked)
		c.byRoles[*asked] = byRoles
	}
	if !byRoles {
		return true, nil
	}
	if err := c.rewind(ctx, revision); err != nil {
		return false, registry.StorageError(err)
	}
	allowed, known := c.then[*asked]
	if !known {
		decision, _, _ := c.roles.Authorize(ctx, &authz.Attributes{User: c.user, Info: *asked})
		allowed = decision == authz.Allow
		c.then[*asked] = allowed
	}
	return allowed, nil
}

// rewind brings roles to a revision: it undoes all later changes.
func (c *changeRights) rewind(ctx context.Context, revision int64) (err error) {
	if c.roles == nil {
		c.roles, err = c.past.Rewind(ctx, revision)
		return err
	}
	for _, l := range c.undo {
		p, err := c.historian.Change(ctx, l.Key, l.Revision)
		if errors.Is(err, kv.ErrNotFound) { // it was forgotten
			continue
		}
		if err != nil {
			return err
		}
		c.roles.Undo(&p.Event)
		clear(c.then)
	}
	c.undo = c.undo[:0]
	return nil
}

// Passed implements rest.ChangeRights.
func (c *changeRights) Passed(change kv.Logged) {
	if c.roles != nil && c.roles.Decides(change.Key) {
		c.undo = append(c.undo, change)
	}
}
