package builtin

import (
	"fmt"
	"math/rand"
	"strconv"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
)

// Fuzzed returns n objects from upstream's own fuzzers, which respect defaults and largely ignore
// validation. Only kinds of Kubernetes' own scheme have fuzzers.
func (k *Kind) Fuzzed(n int, seed uint64) ([]Object, error) {
	if k.scheme != legacyscheme.Scheme {
		return nil, nil
	}
	filler := fuzzer.FuzzerFor(apitesting.FuzzerFuncs, rand.NewSource(int64(seed)), legacyscheme.Codecs)
	var out []Object
	for i := range n {
		internal, err := k.scheme.New(k.hub().WithKind(k.Kind))
		if err != nil {
			return nil, err
		}
		filler.Fill(internal)
		o, err := k.stored(internal)
		if err != nil {
			continue // it cannot be stored in this version, or at all
		}
		m := Object{"name": "fuzzed-" + strconv.Itoa(i)}
		if k.Strategy.NamespaceScoped() {
			m["namespace"] = namespaceName
		}
		o["metadata"] = m
		out = append(out, o)
	}
	return out, nil
}

// FuzzedSets returns creates of fuzzed objects, and updates from objects of the corpus to fuzzed ones.
func FuzzedSets(sets []Set, n int, seed uint64) ([]Set, error) {
	var out []Set
	done := map[string]bool{}
	for _, s := range sets {
		key := s.Kind.ID() + s.Operation
		if done[key] || s.subresource == "scale" {
			continue
		}
		done[key] = true
		objects, err := s.Kind.Fuzzed(n, seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Kind.ID(), err)
		}
		for _, o := range objects {
			fuzzed := Set{Kind: s.Kind, Operation: "fuzzed " + s.Operation, subresource: s.subresource, old: s.old, from: o}
			if s.old != nil {
				fuzzed.from = set(o, []any{"metadata"}, s.old["metadata"]).(Object)
			}
			out = append(out, fuzzed)
		}
	}
	return out, nil
}
