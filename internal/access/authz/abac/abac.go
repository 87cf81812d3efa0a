// Package abac is the ABAC authorizer: attribute-based access control with a policy file.
//
// It reads the file once, one policy per line, in either of the two versions.
package abac

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// A policy grants rights to a user or a group.
type policy struct {
	User            string `json:"user"`
	Group           string `json:"group"`
	Readonly        bool   `json:"readonly"`
	APIGroup        string `json:"apiGroup"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"`
	NonResourcePath string `json:"nonResourcePath"`
}

// everything is the wildcard.
const everything = "*"

// Policies allow a request if one of them does.
type Policies []policy

// Load reads a policy file. Empty lines and lines that begin with # are ignored.
func Load(file string) (Policies, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all Policies
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if text := bytes.TrimSpace(line); len(text) == 0 || text[0] == '#' {
			continue
		}
		p, err := read(line)
		if err != nil {
			return nil, fmt.Errorf("error reading policy file %s, line %d: %s: %w", file, number, line, err)
		}
		all = append(all, *p)
	}
	return all, nil
}

const group = "abac.authorization.kubernetes.io"

// read decodes a policy. A policy without the version v1beta1 has version 0, a flat object.
func read(line []byte) (*policy, error) {
	var p struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       policy `json:"spec"`
		policy
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(line, &p); err != nil {
		return nil, err
	}
	if p.APIVersion != group+"/v1beta1" || p.Kind != "Policy" {
		return p.policy.current(), nil
	}
	p.Spec.ofAuthenticated()
	return &p.Spec, nil
}

// current converts a policy of version 0. Omitted fields match everything.
func (p policy) current() *policy {
	if p.User == "" && p.Group == "" {
		p.Group = request.Authenticated
	}
	p.ofAuthenticated()
	p.APIGroup, p.NonResourcePath = everything, ""
	if p.Namespace == "" && p.Resource == "" {
		p.NonResourcePath = everything
	}
	if p.Namespace == "" {
		p.Namespace = everything
	}
	if p.Resource == "" {
		p.Resource = everything
	}
	return &p
}

// ofAuthenticated limits a policy of all users to authenticated users.
func (p *policy) ofAuthenticated() {
	if p.User == everything || p.Group == everything {
		p.User, p.Group = "", request.Authenticated
	}
}

// Authorize implements authz.Authorizer.
func (all Policies) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	for i := range all {
		if all[i].isOf(a.User) && all[i].allows(a) {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "No policy matched.", nil
}

// isOf reports whether a policy applies to a user. A policy without user and group applies to none.
func (p *policy) isOf(u *request.User) bool {
	if u == nil || p.User == "" && p.Group == "" {
		return false
	}
	return (p.User == "" || p.User == u.Name) && (p.Group == "" || u.In(p.Group))
}

var readVerbs = []string{"get", "list", "watch"}

func (p *policy) allows(a *authz.Attributes) bool {
	if p.Readonly && !slices.Contains(readVerbs, a.Verb) {
		return false
	}
	if a.IsResource {
		return is(p.Namespace, a.Namespace) && is(p.Resource, a.Resource) && is(p.APIGroup, a.Group)
	}
	below, isTree := strings.CutSuffix(p.NonResourcePath, everything)
	return p.NonResourcePath == a.Path || isTree && strings.HasPrefix(a.Path, strings.TrimRight(below, everything))
}

func is(named, name string) bool { return named == everything || named == name }

// RulesFor implements authz.Lister.
func (all Policies) RulesFor(_ context.Context, u *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for i := range all {
		p := &all[i]
		if !p.isOf(u) || !is(p.Namespace, namespace) {
			continue
		}
		verbs := []string{everything}
		if p.Readonly {
			verbs = readVerbs
		}
		if p.Resource != "" {
			rules = append(rules, rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			rules = append(rules, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: []string{p.NonResourcePath}})
		}
	}
	return rules, nil
}
