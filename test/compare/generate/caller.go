package generate

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// Tokens is the content of the token file with the users of audited requests. Grants has their roles.
const Tokens = `admin-token,admin,admin,system:masters
developer-token,developer,id-of-developer,"developers,builders"
viewer-token,viewer,,viewers
stranger-token,stranger,,
support-token,support,,support
deputy-token,deputy,id-of-deputy,deputies
`

// Grants returns the objects of both servers during audited requests: roles of the users, and an admission
// policy that audits.
func Grants() ([]map[string]any, error) { return documents("audited") }

// AuditVocabulary returns words that match some of the audited requests. names are names of sequences.
func AuditVocabulary(names []string) *Vocabulary {
	return &Vocabulary{
		Users:     []string{"admin", "developer", "viewer", "stranger", "support", "deputy", "jane", "system:anonymous"},
		Groups:    []string{"system:masters", "developers", "viewers", "system:authenticated", "system:unauthenticated", "builders"},
		Verbs:     []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post", "options"},
		URLs:      []string{"*", "/healthz*", "/readyz", "/openapi/*", "/apis*", "/api/v1", "/version"},
		APIGroups: []string{"", "", "apps", "rich.example.com", "plain.example.com", "coordination.k8s.io", "present.example.com", "*"},
		Resources: []string{"*", "*/*", "*/status", "*/scale", "pods/*", "pods", "pods/log", "configmaps", "secrets", "serviceaccounts", "serviceaccounts/token", "namespaces", "services", "events", "deployments/status", "deployments", "widgets", "widgets/scale", "widgets/*", "gadgets"},
		Names:     [][]string{names, append([]string{""}, names...), {"none"}}, Namespaces: [][]string{names, append([]string{""}, names...), {"", wire.Elsewhere}},
	}
}

func bearer(token string) []wire.Field {
	return []wire.Field{{Name: "Authorization", Value: "Bearer " + token}}
}

// as returns the headers of a user who impersonates another one.
func as(token, user string, more ...wire.Field) []wire.Field {
	return append(append(bearer(token), wire.Field{Name: "Impersonate-User", Value: user}), more...)
}

var (
	group = wire.Field{Name: "Impersonate-Group", Value: "developers"} // not for jane, who has a role: Kubernetes names any of several bindings
	other = wire.Field{Name: "Impersonate-Group", Value: "builders"}
	extra = wire.Field{Name: "Impersonate-Extra-Example.com%2fScope", Value: "a b"}
)

// callers are the headers of users, with rights and without, and of failing authentications and
// impersonations.
var callers = [][]wire.Field{
	bearer("developer-token"), bearer("developer-token"), bearer("viewer-token"), bearer("stranger-token"), bearer("wrong"),
	{{Name: "Authorization", Value: ""}}, {{Name: "Authorization", Value: "Basic YTpi"}},
	as("admin-token", "jane"), as("admin-token", "jane", other, extra), as("admin-token", "jane", wire.Field{Name: "Impersonate-Group", Value: "system:masters"}),
	as("admin-token", "system:anonymous"), as("admin-token", "system:serviceaccount:"+wire.Scope+":"+wire.Scope),
	as("support-token", "developer"), as("support-token", "developer", group), as("support-token", "jane", other, extra),
	as("support-token", "jane", wire.Field{Name: "Impersonate-Uid", Value: "7"}), as("support-token", "jane", wire.Field{Name: "Impersonate-Group", Value: "system:masters"}),
	as("deputy-token", "developer", group), as("deputy-token", "jane"), as("deputy-token", "jane", other),
	as("deputy-token", "system:serviceaccount:"+wire.Scope+":"+wire.Scope), as("deputy-token", "system:node:node-1"),
	as("stranger-token", "admin"), {group}, {extra}, as("wrong", "admin"),
}

// Called returns a sequence whose steps have several users. The same seed chooses the same users. Steps
// that create the namespace stay those of the administrator.
func Called(s wire.Sequence, seed, n uint64) wire.Sequence {
	g := &G{Rand: rand.New(rand.NewPCG(^seed, n))}
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		step := &s.Steps[i]
		known := slices.ContainsFunc(step.Header, func(f wire.Field) bool {
			return f.Name == "Authorization" || strings.HasPrefix(f.Name, "Impersonate-")
		})
		if step.Kind == "namespace" || known || !g.chance(3) {
			continue
		}
		step.Header = append(slices.Clip(step.Header), one(g, callers...)...)
	}
	return s
}
