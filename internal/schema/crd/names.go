package crd

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// claims are the accepted names of the CustomResourceDefinitions of one group. Plural, singular and
// short names share one namespace, as do kinds and list kinds.
type claims struct {
	resources map[string]bool
	kinds     map[string]bool
}

// add claims the accepted names of one CustomResourceDefinition.
func (c *claims) add(n *names) {
	if c.resources == nil {
		c.resources, c.kinds = map[string]bool{}, map[string]bool{}
	}
	c.resources[n.Plural] = true
	c.resources[n.Singular] = true
	for _, s := range n.ShortNames {
		c.resources[s] = true
	}
	c.kinds[n.Kind] = true
	c.kinds[n.ListKind] = true
}

// none reports whether no definition can claim a name.
func (c *claims) none() bool { return c.resources == nil }

// accept decides which requested names are accepted, given the earlier accepted ones and the taken
// ones, its own among them. A rejected name keeps the earlier accepted one. The condition reports the
// last conflict.
func accept(asked, accepted names, taken claims) (names, condition) {
	out := accepted
	decision := condition{
		Type: v1.NamesAccepted, Status: v1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	refuse := func(reason, message string) {
		decision.Status, decision.Reason, decision.Message = v1.ConditionFalse, reason, message
	}
	one := func(field *string, requested string, taken map[string]bool, reason string) {
		if requested != *field && taken[requested] {
			refuse(reason, inUse(requested))
			return
		}
		*field = requested
	}
	one(&out.Plural, asked.Plural, taken.resources, "PluralConflict")
	one(&out.Singular, asked.Singular, taken.resources, "SingularConflict")
	if !slices.Equal(asked.ShortNames, accepted.ShortNames) {
		if refused := refusedShortNames(asked.ShortNames, accepted.ShortNames, taken.resources); len(refused) > 0 {
			refuse("ShortNamesConflict", aggregate(refused))
		} else {
			out.ShortNames = asked.ShortNames
		}
	}
	one(&out.Kind, asked.Kind, taken.kinds, "KindConflict")
	one(&out.ListKind, asked.ListKind, taken.kinds, "ListKindConflict")
	out.Categories = asked.Categories
	return out, decision
}

// refusedShortNames returns the short names that are taken.
func refusedShortNames(asked, accepted []string, taken map[string]bool) []string {
	var out []string
	for _, s := range asked {
		if s == "" || slices.Contains(accepted, s) || !taken[s] {
			continue
		}
		if m := inUse(s); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func inUse(name string) string { return fmt.Sprintf("%q is already in use", name) }

// aggregate joins messages the way Kubernetes prints several errors as one.
func aggregate(messages []string) string {
	if len(messages) == 1 {
		return messages[0]
	}
	return "[" + strings.Join(messages, ", ") + "]"
}

// sameNames reports whether two sets of names are equal, without telling none
// from an empty list.
func sameNames(a, b *names) bool {
	return a.Plural == b.Plural && a.Singular == b.Singular && a.Kind == b.Kind && a.ListKind == b.ListKind &&
		slices.Equal(a.ShortNames, b.ShortNames) && slices.Equal(a.Categories, b.Categories)
}
