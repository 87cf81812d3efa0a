package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/builtin/corpus"
)

// Corpus has valid objects of each kind, in the order of the files, by the ID of the kind.
type Corpus map[string][]Object

// ReadCorpus reads the objects of package corpus, and in folders below it.
func ReadCorpus(kinds []*Kind, below ...string) (Corpus, error) {
	all, err := corpus.Read(below...)
	if err != nil {
		return nil, err
	}
	out := Corpus{}
	for _, o := range all {
		i := slices.IndexFunc(kinds, func(k *Kind) bool {
			return o["kind"] == k.Kind && o["apiVersion"] == k.gvk().GroupVersion().String() && k.dual == dual(o)
		})
		if i < 0 {
			return nil, fmt.Errorf("corpus: no kind %v %v", o["apiVersion"], o["kind"])
		}
		if m := o["metadata"].(Object); kinds[i].Strategy.NamespaceScoped() {
			m["namespace"] = namespaceName
		}
		out[kinds[i].ID()] = append(out[kinds[i].ID()], o)
	}
	for _, k := range kinds {
		if k.of == nil {
			continue
		}
		for _, o := range out[k.of.ID()] {
			data, err := k.of.encode(o, k.Version)
			if err != nil {
				return nil, err
			}
			var other Object
			if err := json.Unmarshal(data, &other); err != nil {
				return nil, err
			}
			other["metadata"].(Object)["name"] = nameOf(o) + "-" + k.Version // both have the same key in the store
			out[k.ID()] = append(out[k.ID()], other)
		}
	}
	return out, nil
}

// dual reports whether an object is a Service of a dual-stack cluster.
func dual(o Object) bool {
	spec, _ := o["spec"].(Object)
	policy, _ := spec["ipFamilyPolicy"].(string)
	return strings.HasSuffix(policy, "DualStack")
}
