package published

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/server/aggregate"
)

// An index maps the names of a Backend's OpenAPI v3 documents to their paths. It is nil if the
// Backend does not serve v3.
type index map[string]string

// A documentV2 is the OpenAPI v2 document of a Backend with its hash. It is empty if there is none.
type documentV2 struct {
	json []byte
	sum  [sha256.Size]byte
}

// A Document is an OpenAPI v3 document of a Backend.
type Document struct {
	// URL is its path with a hash, as the Backend lists it.
	URL     string
	Service *aggregate.Service
	// Hash is the hash in the URL. It is empty if the Backend serves OpenAPI v2 only, from which
	// the document is converted.
	Hash string
}

// Documents returns the OpenAPI v3 documents of all Backends, by name.
func (l *Library) Documents(ctx context.Context, services *aggregate.Services) map[string]Document {
	if !services.Remote() {
		return nil
	}
	out := map[string]Document{}
	var mu sync.Mutex
	each(services, func(all []*aggregate.Service) {
		found, asked, _ := l.index.get(ctx, all, ClientTimeout) // On an error the previous answer is used.
		var doc documentV2
		if asked && found == nil {
			doc, _, _ = l.v2.get(ctx, all, ClientTimeout)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, s := range all {
			if len(doc.json) > 0 {
				name, hash := s.Path()[1:], fmt.Sprintf("%X", doc.sum)
				out[name] = Document{URL: indexPath + "/" + name + "?hash=" + hash, Service: s, Hash: hash}
			}
			for _, name := range []string{s.Path()[1:], strings.TrimSuffix(s.Path()[1:], "/"+s.Version)} {
				if url := found[name]; url != "" {
					out[name] = Document{URL: url, Service: s}
				}
			}
		}
	})
	return out
}

const indexPath = "/openapi/v3"

func fetchIndex(ctx context.Context, services []*aggregate.Service, before index, etag string) (index, string, error) {
	a, err := ask(ctx, services[0].Backend, indexPath, "application/json", etag, mostBytes)
	switch {
	case err != nil:
		return nil, "", err
	case a.code == http.StatusNotModified && etag != "":
		return before, etag, nil
	case a.code == http.StatusNotFound:
		return nil, "", nil
	case a.code != http.StatusOK:
		return nil, "", fmt.Errorf("the service answers %s with code %d", indexPath, a.code)
	}
	var list struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(a.body, &list); err != nil {
		return nil, "", err
	}
	found := index{}
	for name, at := range list.Paths {
		if path, _, _ := strings.Cut(at.ServerRelativeURL, "?"); path == indexPath+"/"+name {
			found[name] = at.ServerRelativeURL
		}
	}
	return found, a.header.Get("ETag"), nil
}

// A DocumentV2 is the OpenAPI v2 document of a Backend.
type DocumentV2 struct {
	// Services are the versions of the Backend, in the order of discovery.
	Services []*aggregate.Service
	JSON     []byte
	// Sum is a hash of the JSON.
	Sum [sha256.Size]byte
}

// DocumentsV2 returns the OpenAPI v2 documents of all Backends that serve one, in the order of
// discovery.
func (l *Library) DocumentsV2(ctx context.Context, services *aggregate.Services) []DocumentV2 {
	if !services.Remote() {
		return nil
	}
	found := map[place]DocumentV2{}
	var mu sync.Mutex
	each(services, func(all []*aggregate.Service) {
		doc, has, _ := l.v2.get(ctx, all, ClientTimeout) // On an error the previous answer is used.
		mu.Lock()
		defer mu.Unlock()
		if has && len(doc.json) > 0 {
			found[placeOf(all[0].Backend)] = DocumentV2{Services: all, JSON: doc.json, Sum: doc.sum}
		}
	})
	var out []DocumentV2
	for _, all := range byPlace(services) {
		if w, ok := found[placeOf(all[0].Backend)]; ok {
			out = append(out, w)
		}
	}
	return out
}

func fetchWhole(ctx context.Context, services []*aggregate.Service, before documentV2, etag string) (documentV2, string, error) {
	const path = "/openapi/v2"
	a, err := ask(ctx, services[0].Backend, path, "application/json", etag, mostOfV2)
	switch {
	case err != nil:
		return documentV2{}, "", err
	case a.code == http.StatusNotModified && etag != "":
		return before, etag, nil
	case a.code == http.StatusNotFound:
		return documentV2{}, "", nil
	case a.code != http.StatusOK:
		return documentV2{}, "", fmt.Errorf("the service answers %s with code %d", path, a.code)
	case !json.Valid(a.body):
		return documentV2{}, "", errors.New("the OpenAPI v2 of the service is no JSON")
	}
	return documentV2{a.body, sha256.Sum256(a.body)}, a.header.Get("ETag"), nil
}
