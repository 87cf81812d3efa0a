// Package published caches discovery and OpenAPI of the API servers behind this one.
//
// A Backend is requested on demand: again after a minute, and at once when its APIService has
// changed. Requests carry the ETag of the cached answer. A client waits only briefly for a
// Backend that hangs, then gets the previous answer or none. Answers that are no longer used are
// dropped.
//
// The package takes from a Backend only the versions that an APIService sends to it.
// internal/server/discovery and internal/server/openapi merge its answers with the kinds of this
// server.
package published

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/server/aggregate"
)

// ClientTimeout limits the wait of a client for the first answer of a Backend. The client may want
// something else altogether.
const ClientTimeout = 2 * time.Second

// Limits for the size and the duration of an answer. OpenAPI v2 is one document about all
// resources.
const (
	mostBytes    = 10 << 20
	mostOfV2     = 20 << 20
	longest      = 5 * time.Second
	longestForV2 = 30 * time.Second
)

// Options of a Library. The zero value works.
type Options struct {
	// Idle is the time after which an unused answer is dropped. Zero is five minutes.
	Idle time.Duration
}

// A Library caches the answers of Backends.
type Library struct {
	resources shelf[versions]
	index     shelf[index]
	v2        shelf[documentV2]
}

// New returns an empty Library.
func New(o Options) *Library {
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	return &Library{
		resources: shelf[versions]{idle: o.Idle, longest: longest, fetch: fetchVersions, anyway: true},
		index:     shelf[index]{idle: o.Idle, longest: longest, fetch: fetchIndex},
		v2:        shelf[documentV2]{idle: o.Idle, longest: longestForV2, fetch: fetchWhole},
	}
}

// A place identifies a Backend, whatever the number of its versions.
type place struct {
	service  egress.Service
	ca       string
	insecure bool
}

func placeOf(b *aggregate.Backend) place { return place{b.Service, string(b.CABundle), b.Insecure} }

// byPlace groups services by Backend, and keeps their order.
func byPlace(services *aggregate.Services) (groups [][]*aggregate.Service) {
	at := map[place]int{}
	for s := range services.Remotes() {
		p := placeOf(s.Backend)
		i, ok := at[p]
		if !ok {
			i = len(groups)
			at[p] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// each calls do in parallel for the services of each Backend.
func each(services *aggregate.Services, do func([]*aggregate.Service)) {
	groups := byPlace(services)
	if len(groups) == 1 {
		do(groups[0])
		return
	}
	var all sync.WaitGroup
	for _, g := range groups {
		all.Go(func() { do(g) })
	}
	all.Wait()
}

// versionsOf returns the versions of services.
func versionsOf(services []*aggregate.Service) (out []schema.GroupVersion) {
	for _, s := range services {
		out = append(out, s.GroupVersion())
	}
	return out
}

func available(services []*aggregate.Service) bool {
	return slices.ContainsFunc(services, func(s *aggregate.Service) bool { return s.Available })
}

// An answer is the response of a Backend to one request.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// ask requests a path from a Backend. The answer has no body if it still has the ETag.
func ask(ctx context.Context, b *aggregate.Backend, path, accept, etag string, most int64) (*answer, error) {
	header := http.Header{"Accept": {accept}}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	r, err := b.Get(ctx, path, header)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	a := &answer{code: r.StatusCode, header: r.Header}
	if r.StatusCode == http.StatusNotModified {
		return a, nil
	}
	a.body, err = io.ReadAll(io.LimitReader(r.Body, most+1))
	if err == nil && int64(len(a.body)) > most {
		err = fmt.Errorf("%s says more than %d bytes at %s", b.Host(), most, path)
	}
	return a, err
}
