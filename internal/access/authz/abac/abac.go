// Package abac is the authorizer that reads a file of policies, one to a line: attribute-based access
// control.
//
// It knows the policies of the two versions that there are. It reads the file once.
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

// A policy says what somebody may do.
type policy struct {
	User            string `json:"user"`
	Group           string `json:"group"`
	Readonly        bool   `json:"readonly"`
	APIGroup        string `json:"apiGroup"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace"`
	NonResourcePath string `json:"nonResourcePath"`
}

// everything stands for every name.
const everything = "*"

// Policies allow what one of them allows.
type Policies []policy

// Load reads the policies of a file. Lines that are empty or begin with # say nothing.
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

// read reads a policy. One that does not say that it is of version v1beta1 is of the version before,
// in which all is one object.
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

// current returns a policy of the version before as it would be written now. What it does not name is
// everything.
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

// ofAuthenticated has a policy of all users be one of those who said who they are.
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

// isOf reports whether a policy is about a user. One that names nobody is about nobody.
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
