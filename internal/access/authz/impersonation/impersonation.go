// Package impersonation lets somebody make a request as somebody else, where they may.
//
// It reads who is wanted from the headers of the request, asks an authorizer about everything
// that is wanted, and says who the request is made as. It does not know how users are
// authenticated, or who may do what.
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
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// As is who a request is made as.
type As struct {
	User *request.User
	// Constraint is the verb that allowed it, or "" for the one that allows everything
	// that the other may do.
	Constraint string
}

// An Impersonator decides who may make requests as somebody else.
type Impersonator struct {
	authorizer authz.Authorizer
	metrics    *metrics
	recent     recent
}

// New returns an Impersonator that asks an authorizer.
func New(z authz.Authorizer) *Impersonator {
	return &Impersonator{authorizer: z, metrics: newMetrics()}
}

// As returns who a request is made as: nil where its headers want nobody else. asked is what
// is asked for, by who is authenticated. Headers that were followed are removed.
//
// There are several modes in which it may be allowed. The one that was allowed to the same
// user before is tried first, then all others in their order. What is refused is refused
// in the words of the mode that was tried first.
func (i *Impersonator) As(ctx context.Context, h http.Header, asked *authz.Attributes) (*As, error) {
	wanted, err := read(h)
	if wanted == nil || err != nil {
		return nil, err
	}
	begun := time.Now()
	m, as, err := i.choose(ctx, wanted, asked)
	i.metrics.attempted(m, begun)
	return as, err
}

// choose returns the mode in which it is allowed, and who the request is made as.
func (i *Impersonator) choose(ctx context.Context, wanted *request.User, asked *authz.Attributes) (*mode, *As, error) {
	var refused error
	last := i.recent.mode(asked.User.Name)
	if last != nil {
		var as *As
		if as, refused = i.try(ctx, last, wanted, asked); as != nil {
			return last, as, nil
		}
	}
	for m := range modes {
		if &modes[m] == last {
			continue
		}
		as, err := i.try(ctx, &modes[m], wanted, asked)
		if as != nil {
			i.recent.remember(asked.User.Name, &modes[m])
			return &modes[m], as, nil
		}
		if refused == nil {
			refused = err
		}
	}
	return nil, nil, refused
}

// try asks whether it is allowed in one mode. The answer and the error are nil where the mode
// is not for whom is wanted.
func (i *Impersonator) try(ctx context.Context, m *mode, wanted *request.User, asked *authz.Attributes) (*As, error) {
	if !m.isFor(wanted, asked.User) {
		return nil, nil
	}
	c := &check{mode: m, authorizer: i.authorizer, metrics: i.metrics, asking: m.shown(asked.User)}
	return c.as(ctx, wanted, asked)
}

// read reads who is wanted, or nil.
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

// remove removes the headers, so that nobody further down acts on them once more.
func remove(h http.Header) {
	for name := range h {
		switch {
		case name == authenticationv1.ImpersonateUserHeader, name == authenticationv1.ImpersonateUIDHeader,
			name == authenticationv1.ImpersonateGroupHeader, strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix):
			delete(h, name)
		}
	}
}
