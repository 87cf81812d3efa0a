package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
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
			return nil, fmt.Errorf("discovery of the server %s at %s%s: %w", id, address, path, err)
		}
		for _, g := range list {
			for _, v := range below(g, 0) {
				for _, r := range below(v, 1) {
					found.resources[schema.GroupVersionResource{Group: nameOf(g, 0), Version: nameOf(v, 1), Resource: nameOf(r, 2)}] = true
				}
			}
			if nameOf(g, 0) != "" { // the core group has a document of its own, of one server
				found.groups = append(found.groups, g)
			}
		}
	}
	return found, nil
}

// list requests one document, and returns its groups.
func (p *Proxy) list(ctx context.Context, url string) ([]any, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accepts)
	r.Header.Set(forwarded, "true")
	answer, err := p.options.Front.As(self(), p.transports).RoundTrip(r)
	if err != nil {
		p.metrics.sent(http.StatusServiceUnavailable, schema.GroupVersionResource{})
		return nil, err
	}
	defer answer.Body.Close()
	p.metrics.sent(answer.StatusCode, schema.GroupVersionResource{})
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	var document object.Tree
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxDiscovery)).Decode(&document); err != nil {
		return nil, err
	}
	if kind.Text(document, "kind") != "APIGroupDiscoveryList" {
		return nil, errors.New("the answer is not aggregated discovery")
	}
	return wellFormed(kind.List(document, "items"), 0), nil
}

// wellFormed returns the items of a level, and below, that are objects with a name of their own. Only the core group has
// no name. The list changes.
func wellFormed(list []any, level int) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(item any) bool {
		t, ok := item.(object.Tree)
		name := nameOf(item, level)
		if !ok || name == "" && level > 0 || seen[name] {
			return true
		}
		seen[name] = true
		if field := listField[level]; field != "" {
			if below := wellFormed(kind.List(t, field), level+1); below != nil {
				t[field] = below
			}
		}
		return false
	})
}
