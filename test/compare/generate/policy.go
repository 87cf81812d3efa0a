package generate

import (
	"maps"
	"math/rand/v2"
)

// A Vocabulary has the words of random audit policies.
type Vocabulary struct {
	Users, Groups, Verbs, URLs []string
	APIGroups, Resources       []string
	Names, Namespaces          [][]string // lists of which a rule has one
}

// stages are the stages of an audit event.
var stages = []string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}

// Policy returns a random, valid audit policy. Each part of a rule may be missing: then it matches
// everything.
func (v *Vocabulary) Policy(r *rand.Rand) map[string]any {
	g := &G{Rand: r}
	var rules []any
	for range 2 + g.IntN(6) {
		rules = append(rules, v.rule(g))
	}
	if !g.chance(4) {
		rules = append(rules, map[string]any{"level": one(g, "Metadata", "Request", "RequestResponse", "RequestResponse"), "omitStages": someOf(g, 6, stages...)})
	}
	return map[string]any{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules,
		"omitStages": someOf(g, 4, stages...), "omitManagedFields": g.chance(3)}
}

func (v *Vocabulary) rule(g *G) map[string]any {
	rule := map[string]any{"level": one(g, "None", "Metadata", "Request", "RequestResponse"), "omitStages": someOf(g, 3, stages...),
		"users": someOf(g, 3, v.Users...), "userGroups": someOf(g, 3, v.Groups...), "verbs": someOf(g, 2, v.Verbs...)}
	maps.DeleteFunc(rule, func(_ string, words any) bool { list, ok := words.([]string); return ok && list == nil })
	switch g.IntN(4) {
	case 0:
		rule["nonResourceURLs"] = someOf(g, 1, v.URLs...)
	case 1, 2:
		var resources []any
		for range 1 + g.IntN(2) {
			group := map[string]any{"group": one(g, v.APIGroups...)}
			if !g.chance(3) {
				group["resources"] = someOf(g, 1, v.Resources...)
				if g.chance(3) {
					group["resourceNames"] = one(g, v.Names...)
				}
			}
			resources = append(resources, group)
		}
		rule["resources"] = resources
		if g.chance(3) {
			rule["namespaces"] = one(g, v.Namespaces...)
		}
	}
	if g.chance(2) {
		rule["omitManagedFields"] = g.chance(2)
	}
	return rule
}

// someOf returns up to three of the values with the probability 1/n, and else none.
func someOf(g *G, n int, values ...string) []string {
	if !g.chance(n) {
		return nil
	}
	out := []string{one(g, values...)}
	for range g.IntN(3) {
		out = append(out, one(g, values...))
	}
	return out
}
