package peer

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// Others calls do for the resources of kinds that only peers serve, in each version once. A tree is an
// item of aggregated discovery. The controllers of this server handle the objects of these kinds
// through the peers.
func (p *Proxy) Others(ctx context.Context, do func(of schema.GroupVersionResource, found object.Tree)) {
	if p == nil {
		return
	}
	groups := p.Groups(ctx)
	if groups == nil {
		return
	}
	for _, o := range p.othersOf(groups, p.options.Catalog.Set()) {
		do(o.of, o.found)
	}
}

// others are the resources that only peers serve, for one state of both sides.
type others struct {
	groups *Groups
	set    *resource.Set
	all    []other
}

type other struct {
	of    schema.GroupVersionResource
	found object.Tree
}

// othersOf returns the resources in groups that a set does not serve. The last result is kept: controllers ask for each
// object.
func (p *Proxy) othersOf(groups *Groups, set *resource.Set) []other {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.others.groups == groups && p.others.set == set {
		return p.others.all
	}
	p.others = others{groups: groups, set: set}
	done := map[schema.GroupVersionResource]bool{}
	for _, group := range merge(0, groups.lists...) {
		for _, version := range below(group, 0) {
			for _, item := range below(version, 1) {
				of := schema.GroupVersionResource{Group: nameOf(group, 0), Version: nameOf(version, 1), Resource: nameOf(item, 2)}
				if t, ok := item.(object.Tree); ok && !done[of] && set.Lookup(of.Group, of.Resource) == nil {
					done[of] = true
					p.others.all = append(p.others.all, other{of, t})
				}
			}
		}
	}
	return p.others.all
}

// To returns the URL of a peer that serves a resource, and a RoundTripper that sends requests to it as
// a user. The URL is nil if no address of such a peer is known; known reports whether there is such a peer.
func (p *Proxy) To(ctx context.Context, of schema.GroupVersionResource, user *request.User) (to *url.URL, as http.RoundTripper, known bool) {
	if p == nil {
		return nil, nil, false
	}
	ids := p.serving(ctx, of)
	addresses := p.addresses(ids)
	if len(addresses) == 0 {
		return nil, nil, len(ids) > 0
	}
	return &url.URL{Scheme: "https", Host: addresses[rand.IntN(len(addresses))]}, onceOnly{p.options.Front.As(user, p.transports)}, true
}

// onceOnly marks requests, so that the peer does not forward them.
type onceOnly struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o onceOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(forwarded, "true")
	return o.RoundTripper.RoundTrip(r)
}
