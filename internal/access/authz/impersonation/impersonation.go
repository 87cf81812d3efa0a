// Package impersonation handles requests with impersonation headers.
//
// It reads the impersonated user from the headers, asks an authorizer about every part of it, and
// returns the user of the request. It knows neither authentication nor roles.
package impersonation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/bounded"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// As is an impersonated user.
type As struct {
	User *request.User
	// Constraint is the verb that allowed the impersonation, or "" for impersonation without
	// constraints.
	Constraint string
}

// An Impersonator authorizes impersonation.
type Impersonator struct {
	modes      []mode // in order; the unconstrained one is last
	authorizer authz.Authorizer
	metrics    *metrics
	recent     *bounded.Cache[string, *mode] // the mode that last allowed each user
}

// New returns an Impersonator with an authorizer.
func New(z authz.Authorizer, gates *gate.Set) *Impersonator {
	all := modes[:]
	if !gates.On(gate.ConstrainedImpersonation) {
		all = modes[len(modes)-1:]
	}
	return &Impersonator{authorizer: z, modes: all, metrics: newMetrics(gates), recent: bounded.New[string, *mode](maxRecent)}
}

// As returns the impersonated user of a request, or nil without impersonation headers. asked is the
// request of the authenticated user. As removes the headers after success.
//
// There are several modes. The mode that last allowed the same user comes first, then the others in
// order. A denial has the message of the first mode.
func (i *Impersonator) As(ctx context.Context, h http.Header, attrs *authz.Attributes) (*As, error) {
	wanted, err := read(h)
	if wanted == nil || err != nil {
		return nil, err
	}
	begun := time.Now()
	m, as, err := i.choose(ctx, wanted, attrs)
	i.metrics.attempted(m, begun)
	return as, err
}

// choose returns the first mode that allows the impersonation, and the impersonated user.
func (i *Impersonator) choose(ctx context.Context, wanted *request.User, attrs *authz.Attributes) (*mode, *As, error) {
	var refused error
	last, ok := i.recent.Get(attrs.User.Name)
	if ok {
		var as *As
		if as, refused = i.try(ctx, last, wanted, attrs); as != nil {
			return last, as, nil
		}
	}
	for m := range i.modes {
		if &i.modes[m] == last {
			continue
		}
		as, err := i.try(ctx, &i.modes[m], wanted, attrs)
		if as != nil {
			i.recent.Add(attrs.User.Name, &i.modes[m])
			return &i.modes[m], as, nil
		}
		if refused == nil {
			refused = err
		}
	}
	return nil, nil, refused
}

// try checks one mode. It returns nil and no error if the mode does not apply.
func (i *Impersonator) try(ctx context.Context, m *mode, wanted *request.User, attrs *authz.Attributes) (*As, error) {
	if !m.isFor(wanted, attrs.User) {
		return nil, nil
	}
	c := &check{mode: m, authorizer: i.authorizer, metrics: i.metrics, asking: m.shown(attrs.User)}
	return c.as(ctx, wanted, attrs)
}

// read parses the impersonated user, or returns nil.
func read(h http.Header) (*request.User, error) {
	wanted := &request.User{Name: h.Get(authenticationv1.ImpersonateUserHeader)}
	others := false
	for name, values := range h {
		switch {
		case name == authenticationv1.ImpersonateUIDHeader:
			wanted.UID = h.Get(name)
			others = others || wanted.UID != ""
		case name == authenticationv1.ImpersonateGroupHeader:
			wanted.Groups = slices.Clone(values)
			others = others || len(values) > 0
		case strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix):
			others = true
			addExtra(wanted, name, values)
		}
	}
	switch {
	case wanted.Name != "":
		remove(h)
		return wanted, nil
	case others:
		return nil, status.BadRequest("%s", fmt.Sprintf("requested &user.DefaultInfo{Name:%#v, UID:%#v, Groups:%#v, Extra:%#v} without impersonating a user name",
			wanted.Name, wanted.UID, wanted.Groups, wanted.Extra))
	default:
		return nil, nil
	}
}

func addExtra(wanted *request.User, name string, values []string) {
	if len(values) == 0 {
		return
	}
	key := strings.ToLower(name[len(authenticationv1.ImpersonateUserExtraHeaderPrefix):])
	if plain, err := url.PathUnescape(key); err == nil {
		key = plain
	}
	if wanted.Extra == nil {
		wanted.Extra = map[string][]string{}
	}
	wanted.Extra[key] = append(wanted.Extra[key], values...)
}

// remove removes the headers, so that no later handler acts on them.
func remove(h http.Header) {
	for name := range h {
		switch {
		case name == authenticationv1.ImpersonateUserHeader, name == authenticationv1.ImpersonateUIDHeader,
			name == authenticationv1.ImpersonateGroupHeader, strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix):
			delete(h, name)
		}
	}
}
