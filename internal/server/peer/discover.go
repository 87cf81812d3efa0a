package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
)

const (
	// discoveryTime limits a request for discovery, and maxDiscovery its answer.
	discoveryTime = 10 * time.Second
	maxDiscovery  = 64 << 20

	// accepts is aggregated discovery of the peer only, or of all peers from a server that does not
	// know the profile.
	accepts = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer," +
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// self returns the user of the server's own requests, as in kube-apiserver. Its groups allow it to
// read discovery.
func self() *request.User {
	const name = "system:apiserver"
	return &request.User{Name: name, UID: name, Groups: []string{"system:authenticated"}}
}

// discover requests the discovery of a server.
func (p *Proxy) discover(ctx context.Context, id, address string) (*served, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTime)
	defer cancel()
	found := &served{id: id, asked: time.Now(), resources: map[schema.GroupVersionResource]bool{}}
	for _, path := range []string{"/api", "/apis"} {
		list, err := p.list(ctx, "https://"+address+path)
		if err != nil {
			return nil, fmt.Errorf("discovery of the server %s: %w", id, err)
		}
		for _, g := range list.Items {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					found.resources[schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: r.Resource}] = true
				}
			}
			if g.Name != "" { // the core group has a document of its own, of one server
				found.groups = append(found.groups, g)
			}
		}
	}
	return found, nil
}

// list requests one document.
func (p *Proxy) list(ctx context.Context, url string) (*apidiscoveryv2.APIGroupDiscoveryList, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	ways, err := p.transports()
	if err != nil {
		return nil, err
	}
	p.options.Front.Tell(r.Header, self())
	r.Header.Set("Accept", accepts)
	r.Header.Set(forwarded, "true")
	answer, err := ways.Usual.RoundTrip(r)
	if err != nil {
		p.metrics.forwarded(http.StatusServiceUnavailable, schema.GroupVersionResource{})
		return nil, err
	}
	defer answer.Body.Close()
	p.metrics.forwarded(answer.StatusCode, schema.GroupVersionResource{})
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDiscovery))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("%s: the answer is a %s, not aggregated discovery", url, list.Kind)
	}
	return &list, nil
}
