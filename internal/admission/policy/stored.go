package policy

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A policySpec is the spec of a policy of either kind.
type policySpec struct {
	FailurePolicy      *admissionregistrationv1.FailurePolicyType
	ParamKind          *admissionregistrationv1.ParamKind
	MatchConstraints   *admissionregistrationv1.MatchResources
	MatchConditions    []admissionregistrationv1.MatchCondition
	Variables          []admissionregistrationv1.Variable
	Validations        []admissionregistrationv1.Validation
	AuditAnnotations   []admissionregistrationv1.AuditAnnotation
	Mutations          []admissionregistrationv1.Mutation
	ReinvocationPolicy admissionregistrationv1.ReinvocationPolicyType
}

// ignores reports whether the failure policy is Ignore.
func (s *policySpec) ignores() bool {
	return s.FailurePolicy != nil && *s.FailurePolicy == admissionregistrationv1.Ignore
}

// A binding is the spec of a binding of either kind, with its name.
type binding struct {
	name string

	PolicyName        string
	ParamRef          *admissionregistrationv1.ParamRef
	MatchResources    *admissionregistrationv1.MatchResources
	ValidationActions []admissionregistrationv1.ValidationAction
}

// policies are the policies of one kind, with their bindings.
type policies[C any] struct {
	follower   *stored.Follower
	unreadable stored.Unreadable // policies and bindings
	log        *slog.Logger
	compile    func(*policySpec) *C

	// stored are from the API, and files from manifest files.
	stored, files set[C]

	// The stored policies and bindings by name. Only the follower changes them.
	known map[string]*policy[C]
	bound map[string]*binding
}

// A set has policies with their bindings.
type set[C any] struct {
	policies match.Index[*policy[C]]
	bindings match.Index[*binding]
}

// follow starts to follow the stored policies and bindings.
func (p *policies[C]) follow(cache *watchcache.Cache, set *resource.Set, kinds ...schema.GroupResource) {
	p.known, p.bound = map[string]*policy[C]{}, map[string]*binding{}
	var prefixes []string
	for _, k := range kinds {
		prefixes = append(prefixes, set.Lookup(k.Group, k.Resource).StoragePrefix)
	}
	p.follower = stored.Follow(cache, set, kinds, func(kind int, c stored.Changes) {
		take := []func(string, *watchcache.Object){p.takePolicy, p.takeBinding}[kind]
		if c.Anew() {
			p.unreadable.Clear(prefixes[kind])
		}
		if c.Anew() && kind == 0 {
			clear(p.known)
		} else if c.Anew() {
			clear(p.bound)
		}
		for o, exists := range c.All() {
			name := strings.TrimPrefix(o.Key, prefixes[kind])
			if !exists {
				p.unreadable.Set(o, nil)
				o = nil
			}
			take(name, o)
		}
		p.reindex()
	})
}

// readable is the part of a stored object that the plugins need.
type readable[S any] struct {
	Metadata struct {
		UID        string
		Generation int64
	}
	Spec S
}

// read decodes an object. It returns nil for a deleted or unreadable one.
func read[C, S any](p *policies[C], o *watchcache.Object) *readable[S] {
	if o == nil {
		return nil
	}
	var r *readable[S]
	data, err := o.JSON()
	if err == nil {
		r, err = parse[S](data)
	}
	p.unreadable.Set(o, err)
	if err != nil {
		p.log.Warn("a stored policy or binding cannot be read, and writes are rejected", "key", o.Key, "error", err)
		return nil
	}
	return r
}

func parse[S any](data []byte) (*readable[S], error) {
	r := &readable[S]{}
	return r, json.Unmarshal(data, r)
}

// takePolicy records a new state of a policy. The compiled expressions stay as long as the spec
// does not change.
func (p *policies[C]) takePolicy(name string, o *watchcache.Object) {
	r := read[C, policySpec](p, o)
	if r == nil {
		delete(p.known, name)
		return
	}
	if old := p.known[name]; old != nil && old.uid == r.Metadata.UID && old.generation == r.Metadata.Generation && r.Metadata.Generation != 0 {
		return
	}
	p.known[name] = p.newPolicy(name, r)
}

func (p *policies[C]) newPolicy(name string, r *readable[policySpec]) *policy[C] {
	return &policy[C]{name: name, uid: r.Metadata.UID, generation: r.Metadata.Generation, policySpec: r.Spec, compile: p.compile}
}

func (p *policies[C]) takeBinding(name string, o *watchcache.Object) {
	r := read[C, binding](p, o)
	if r == nil {
		delete(p.bound, name)
		return
	}
	b := r.Spec
	b.name = name
	p.bound[name] = &b
}

// reindex indexes the stored policies. A policy without a binding does not apply.
func (p *policies[C]) reindex() { p.stored.replace(p.known, p.bound) }

// replace indexes policies by name, and their bindings by the names of the policy and their own.
func (s *set[C]) replace(policies map[string]*policy[C], all map[string]*binding) {
	var bindings []match.Entry[*binding]
	isBound := map[string]bool{}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *binding) int {
		return cmp.Or(strings.Compare(a.PolicyName, b.PolicyName), strings.Compare(a.name, b.name))
	})
	for _, b := range sorted {
		if policies[b.PolicyName] == nil {
			continue
		}
		isBound[b.PolicyName] = true
		everything := &admissionregistrationv1.MatchResources{}
		if b.MatchResources != nil {
			everything = b.MatchResources
		}
		bindings = append(bindings, match.Entry[*binding]{Criteria: match.ByResources(everything), Of: b})
	}
	var bound []match.Entry[*policy[C]]
	for _, name := range slices.Sorted(maps.Keys(isBound)) {
		if of := policies[name]; of.MatchConstraints != nil {
			bound = append(bound, match.Entry[*policy[C]]{Criteria: match.ByResources(of.MatchConstraints), Of: of})
		}
	}
	s.bindings.Replace(bindings)
	s.policies.Replace(bound)
}

// find appends the policies that match a write, with their bindings. Policies without a binding are among them.
func (s *set[C]) find(catalog *resource.Catalog, a *registry.Admission, all []found[C]) []found[C] {
	policies := s.policies.Find(catalog, a)
	if len(policies) == 0 {
		return all
	}
	all = slices.Grow(all, len(policies))
	bindings := s.bindings.Find(catalog, a)
	for i := range policies {
		name := policies[i].Of.name
		for len(bindings) > 0 && bindings[0].Of.PolicyName < name {
			bindings = bindings[1:]
		}
		n := 0
		for n < len(bindings) && bindings[n].Of.PolicyName == name {
			n++
		}
		all = append(all, found[C]{&policies[i], bindings[:n]})
		bindings = bindings[n:]
	}
	return all
}
