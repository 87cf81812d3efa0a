package app

import (
	"context"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
)

// pastRights are the rights of the user of one request to earlier states. It implements rest.PastRights.
type pastRights struct {
	app       *App
	user      *request.User
	past      *rbac.Past
	historian kv.Historian

	byRoles map[request.Info]bool  // whether a right comes from RBAC
	roles   *rbac.Timeline         // nil until a decision needs it
	then    map[request.Info]error // decisions of roles
}

// pastRights returns a function for the rights of the user of a request.
func (w *wired) pastRights(a *App) func(context.Context) rest.PastRights {
	past := rbac.NewPast(w.backend, w.core)
	historian, _ := kv.As[kv.Historian](w.backend)
	return func(ctx context.Context) rest.PastRights {
		return &pastRights{
			app: a, user: request.UserFrom(ctx), past: past, historian: historian, byRoles: map[request.Info]bool{}, then: map[request.Info]error{},
		}
	}
}

// Has implements rest.PastRights.
func (p *pastRights) Has(ctx context.Context, asked *request.Info) (bool, error) {
	decision, _, err := p.app.authorizer.Authorize(ctx, &authz.Attributes{User: p.user, Info: *asked})
	switch {
	case decision == authz.Allow:
		return true, nil
	case err != nil:
		return false, status.Internal(err)
	default:
		return false, nil
	}
}

// Had implements rest.PastRights.
func (p *pastRights) Had(ctx context.Context, asked *request.Info, revision int64) error {
	byRoles, known := p.byRoles[*asked]
	if !known {
		byRoles = p.app.byRolesOnly(ctx, p.user, asked)
		p.byRoles[*asked] = byRoles
	}
	if !byRoles {
		return nil
	}
	if err := p.move(ctx, revision); err != nil {
		return registry.StorageError(err)
	}
	denied, known := p.then[*asked]
	if !known {
		denied = deniedBy(ctx, p.roles, &authz.Attributes{User: p.user, Info: *asked})
		p.then[*asked] = denied
	}
	return denied
}

// move brings roles to a revision.
func (p *pastRights) move(ctx context.Context, revision int64) (err error) {
	if p.roles == nil {
		p.roles, err = p.past.Timeline(ctx, p.historian, revision)
		return err
	}
	moved, err := p.roles.Move(ctx, revision)
	if moved {
		clear(p.then)
	}
	return err
}
