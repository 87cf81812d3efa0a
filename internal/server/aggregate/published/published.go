// Package published has what the API servers behind this one publish about themselves: which
// resources they have, and their OpenAPI.
//
// A Backend is asked when somebody wants to know, again after a minute, and at once when its
// APIService has changed. It is asked by ETag where it has one. Nobody waits long for one that hangs:
// what it has said before, or that it has said nothing, has to do. What nobody asks for any more is
// forgotten.
//
// The package believes a Backend only in what is about the versions that are sent to it. It does not
// know what is made of an answer: internal/server/discovery and internal/server/openapi put it together with
// what this server serves itself.
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

// Patience is how long a client waits for a Backend to say what it has not said yet. Its requests
// may be about something else altogether.
const Patience = 2 * time.Second

// How much a Backend may say, and how long it may take. OpenAPI v2 is one document of everything.
const (
	mostBytes    = 10 << 20
	mostOfV2     = 20 << 20
	longest      = 5 * time.Second
	longestForV2 = 30 * time.Second
)

// Options of a Library. The zero value works.
type Options struct {
	// Idle is how long after the last request for it something is forgotten. Zero is five minutes.
	Idle time.Duration
}

// A Library has what Backends have published.
type Library struct {
	resources shelf[versions]
	index     shelf[index]
	whole     shelf[whole]
}

// New returns a Library with nothing in it.
func New(o Options) *Library {
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	return &Library{
		resources: shelf[versions]{idle: o.Idle, longest: longest, fetch: fetchVersions, anyway: true},
		index:     shelf[index]{idle: o.Idle, longest: longest, fetch: fetchIndex},
		whole:     shelf[whole]{idle: o.Idle, longest: longestForV2, fetch: fetchWhole},
	}
}

// A place is a Backend, however many versions are sent to it.
type place struct {
	service  egress.Service
	ca       string
	insecure bool
}

func placeOf(b *aggregate.Backend) place { return place{b.Service, string(b.CABundle), b.Insecure} }

// byPlace returns the versions that are sent to the same Backend together, in their order.
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

// each calls do for all Backends at a time, with their versions.
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

// versionsOf are those that services are about.
func versionsOf(services []*aggregate.Service) (out []schema.GroupVersion) {
	for _, s := range services {
		out = append(out, s.GroupVersion())
	}
	return out
}

func available(services []*aggregate.Service) bool {
	return slices.ContainsFunc(services, func(s *aggregate.Service) bool { return s.Available })
}

// An answer is what a Backend says at a path.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// ask gets a page of a Backend. One that has not changed since it had the ETag has no body.
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
