package peer

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
)

// Others calls do for the resources of kinds that only peers serve, in each version once. A tree is an
// item of aggregated discovery. The controllers of this server handle the objects of these kinds
// through the peers.
func (p *Proxy) Others(ctx context.Context, do func(of schema.GroupVersionResource, found object.Tree)) {
	if p == nil {
		return
	}
	groups, done := p.Groups(ctx), map[schema.GroupVersionResource]bool{}
	if groups == nil {
		return
	}
	set := p.options.Catalog.Set()
	for _, group := range merge(0, groups.lists...) {
		for _, version := range below(group, 0) {
			for _, item := range below(version, 1) {
				of := schema.GroupVersionResource{Group: nameOf(group, 0), Version: nameOf(version, 1), Resource: nameOf(item, 2)}
				if t, ok := item.(object.Tree); ok && !done[of] && set.Lookup(of.Group, of.Resource) == nil {
					done[of] = true
					do(of, t)
				}
			}
		}
	}
}

// To returns the URL of a peer that serves a resource, and a RoundTripper that sends requests to it as
// a user. The URL is nil if there is no such peer.
func (p *Proxy) To(ctx context.Context, of schema.GroupVersionResource, user *request.User) (*url.URL, http.RoundTripper) {
	if p == nil {
		return nil, nil
	}
	addresses := p.addresses(p.serving(ctx, of))
	if len(addresses) == 0 {
		return nil, nil
	}
	return &url.URL{Scheme: "https", Host: addresses[rand.IntN(len(addresses))]}, p.options.Front.As(user, p.transports)
}
