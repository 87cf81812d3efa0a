package authz

import (
	"context"
	"fmt"
	"strings"
)

// Paths allows every user to request some non-resource paths.
type Paths struct {
	exact    map[string]bool
	prefixes []string
}

// CoversPath reports whether a path of a rule covers a path, or another path of a rule. A * at its end
// stands for any rest.
func CoversPath(rule, path string) bool {
	return rule == path || strings.HasSuffix(rule, "*") && strings.HasPrefix(path, strings.TrimRight(rule, "*"))
}

// NewPaths returns Paths. A path that ends in * is a prefix; the leading slash is optional.
func NewPaths(paths []string) (*Paths, error) {
	p := &Paths{exact: map[string]bool{}}
	for _, path := range paths {
		path = strings.TrimPrefix(path, "/")
		prefix, isPrefix := strings.CutSuffix(path, "*")
		switch {
		case strings.Contains(prefix, "*"):
			return nil, fmt.Errorf("only trailing * allowed in %q", path)
		case isPrefix:
			p.prefixes = append(p.prefixes, prefix)
		default:
			p.exact[path] = true
		}
	}
	return p, nil
}

// Authorize implements Authorizer.
func (p *Paths) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if a.IsResource {
		return NoOpinion, "", nil
	}
	path := strings.TrimPrefix(a.Path, "/")
	if p.exact[path] {
		return Allow, "", nil
	}
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(path, prefix) {
			return Allow, "", nil
		}
	}
	return NoOpinion, "", nil
}
