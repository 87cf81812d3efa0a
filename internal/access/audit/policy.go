package audit

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/apis/audit/install"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"

	"github.com/anykind/anykind/internal/access/authz"
)

// A Policy decides how much of a request is logged: the first rule that matches it decides.
type Policy struct {
	rules []rule
	other Decision // of a request without a rule
}

// A Decision is how a request is logged.
type Decision struct {
	Level             audit.Level
	OmitStages        []audit.Stage
	OmitManagedFields bool
}

type rule struct {
	audit.PolicyRule
	decision Decision
}

// ReadPolicy reads the Policy in a file. Fields that are unknown, or that the file has twice, are
// warnings, as in Kubernetes.
func ReadPolicy(file string, log *slog.Logger) (*Policy, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: failed to read file path %q: %w", file, err)
	}
	p, err := parsePolicy(data, log)
	if err != nil {
		return nil, fmt.Errorf("loading audit policy file: %w: from file %s", err, file)
	}
	return p, nil
}

func parsePolicy(data []byte, log *slog.Logger) (*Policy, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	in := &audit.Policy{}
	_, kind, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder().Decode(data, nil, in)
	if runtime.IsStrictDecodingError(err) {
		log.Warn("the audit policy has fields that are ignored", "error", err)
		in = &audit.Policy{}
		_, kind, err = serializer.NewCodecFactory(scheme).UniversalDecoder(auditv1.SchemeGroupVersion).Decode(data, nil, in)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed decoding: %w", err)
	case kind.GroupVersion() != auditv1.SchemeGroupVersion:
		return nil, fmt.Errorf("unknown group version field %v in policy", kind)
	}
	if errs := validation.ValidatePolicy(in); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if len(in.Rules) == 0 {
		return nil, errors.New("loaded illegal policy with 0 rules")
	}
	return newPolicy(in), nil
}

func newPolicy(in *audit.Policy) *Policy {
	p := &Policy{other: Decision{Level: audit.LevelNone, OmitStages: in.OmitStages, OmitManagedFields: in.OmitManagedFields}}
	for _, r := range in.Rules {
		d := Decision{Level: r.Level, OmitStages: slices.Concat(in.OmitStages, r.OmitStages), OmitManagedFields: in.OmitManagedFields}
		if r.OmitManagedFields != nil {
			d.OmitManagedFields = *r.OmitManagedFields
		}
		p.rules = append(p.rules, rule{r, d})
	}
	return p
}

// Decide returns the decision about a request.
func (p *Policy) Decide(a *authz.Attributes) *Decision {
	for i := range p.rules {
		if r := &p.rules[i]; r.matches(a) {
			return &r.decision
		}
	}
	return &p.other
}

// omitsReceived reports whether a rule logs requests without the stage RequestReceived.
func (p *Policy) omitsReceived() bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.decision.Level != audit.LevelNone && r.decision.omits(audit.StageRequestReceived)
	})
}

func (d *Decision) includes(level audit.Level) bool { return d.Level.GreaterOrEqual(level) }

func (d *Decision) omits(s audit.Stage) bool { return slices.Contains(d.OmitStages, s) }

func (r *rule) matches(a *authz.Attributes) bool {
	if len(r.Users) > 0 && (a.User == nil || !slices.Contains(r.Users, a.User.Name)) {
		return false
	}
	if len(r.UserGroups) > 0 {
		if a.User == nil || !slices.ContainsFunc(a.User.Groups, func(g string) bool { return slices.Contains(r.UserGroups, g) }) {
			return false
		}
	}
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, a.Verb) {
		return false
	}
	switch {
	case len(r.Namespaces) > 0 || len(r.Resources) > 0:
		return a.IsResource && r.matchesResource(a)
	case len(r.NonResourceURLs) > 0:
		return !a.IsResource && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return authz.CoversPath(url, a.Path) })
	default:
		return true
	}
}

func (r *rule) matchesResource(a *authz.Attributes) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, a.Namespace) {
		return false
	}
	return len(r.Resources) == 0 || slices.ContainsFunc(r.Resources, func(g audit.GroupResources) bool {
		switch {
		case g.Group != a.Group && g.Group != "*":
			return false
		case len(g.Resources) == 0:
			return true
		case len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, a.Name):
			return false
		}
		return slices.ContainsFunc(g.Resources, func(pattern string) bool { return covers(pattern, a.Resource, a.Subresource) })
	})
}

// covers reports whether a pattern, such as pods, pods/log, pods/*, */status or *, covers a resource or
// its subresource.
func covers(pattern, resource, subresource string) bool {
	if pattern == "*" {
		return true
	}
	of, sub, divided := strings.Cut(pattern, "/")
	switch {
	case !divided:
		return subresource == "" && of == resource
	case sub == "*" && of == resource:
		return true
	default:
		return subresource != "" && sub == subresource && (of == resource || of == "*")
	}
}
