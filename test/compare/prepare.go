package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// prepare creates the definitions on both servers, waits until their objects are served, and returns
// the resources that both serve.
func prepare(ctx context.Context, p *servers.Pair) (*generate.World, error) {
	definitions, err := generate.Definitions()
	if err != nil {
		return nil, err
	}
	custom, err := generate.Custom(definitions)
	if err != nil {
		return nil, err
	}
	for i, c := range []*wire.Client{p.Theirs, p.Ours} {
		elsewhere := func() bool {
			p.Elsewhere[i] = c.Do(ctx, wire.Step{Method: "GET", Path: "/api/v1/namespaces/" + wire.Elsewhere})
			return p.Elsewhere[i].Code == http.StatusOK
		}
		if err := servers.Wait(ctx, elsewhere); err != nil {
			return nil, fmt.Errorf("%s has no namespace %s: %w", c.Host(), wire.Elsewhere, err)
		}
		for _, d := range definitions {
			body, err := json.Marshal(d)
			if err != nil {
				return nil, err
			}
			a := c.Do(ctx, wire.Step{Method: "POST", Path: servers.Definitions, Header: []wire.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body})
			if a.Code != http.StatusCreated && a.Code != http.StatusConflict {
				return nil, fmt.Errorf("%s: making a definition: %d %s %s", c.Host(), a.Code, a.Failed, a.Body)
			}
		}
		for _, r := range custom {
			if err := served(ctx, c, r); err != nil {
				return nil, err
			}
		}
	}
	built, err := builtIn(ctx, p)
	if err != nil {
		return nil, err
	}
	return &generate.World{Resources: append(built, custom...)}, nil
}

// served waits until the objects of a resource are served and in the published documents.
func served(ctx context.Context, c *wire.Client, r *generate.Resource) error {
	for _, path := range []string{r.Path("", ""), "/openapi/v3" + r.Root()} {
		if err := servers.Wait(ctx, func() bool { return c.Do(ctx, wire.Step{Method: "GET", Path: path}).Code == http.StatusOK }); err != nil {
			return fmt.Errorf("%s does not serve %s: %w", c.Host(), path, err)
		}
	}
	return servers.Wait(ctx, func() bool {
		a := c.Do(ctx, wire.Step{Method: "GET", Path: r.Root()})
		return strings.Contains(string(a.Body), `"`+r.Plural+`"`)
	})
}

// builtIn returns the kinds that both servers have without a definition.
func builtIn(ctx context.Context, p *servers.Pair) ([]*generate.Resource, error) {
	var both [2][]generate.Discovered
	for i, c := range []*wire.Client{p.Theirs, p.Ours} {
		for _, path := range []string{"/api", "/apis"} {
			a := c.Do(ctx, wire.Step{Method: "GET", Path: path, Header: []wire.Field{{Name: "Accept", Value: aggregated}}})
			var list struct{ Items []generate.Discovered }
			if err := json.Unmarshal(a.Body, &list); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.Host(), path, err)
			}
			for _, g := range list.Items {
				if !strings.HasSuffix(g.Metadata.Name, ".example.com") {
					both[i] = append(both[i], g)
				}
			}
		}
	}
	return generate.BuiltIn(both[0], both[1], func(root string) ([]byte, error) {
		a := p.Theirs.Do(ctx, wire.Step{Method: "GET", Path: "/openapi/v3" + root})
		if a.Code != http.StatusOK {
			return nil, fmt.Errorf("no OpenAPI of %s: %d %s", root, a.Code, a.Failed)
		}
		return a.Body, nil
	})
}
