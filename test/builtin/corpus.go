package builtin

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// gated has objects that are valid only with feature gates.
//
//go:embed corpus/*.yaml corpus/gated/*.yaml
var corpusFiles embed.FS

// Corpus has valid objects of each kind, in the order of the files, by the ID of the kind.
//
// A pod spec, also in a template, may have a field "from" with the name of a pod of the corpus. It
// then inherits the spec of that pod; its own fields take precedence.
type Corpus map[string][]Object

// ReadCorpus reads the objects in corpus, and in folders below it.
func ReadCorpus(kinds []*Kind, below ...string) (Corpus, error) {
	var all []Object
	for _, folder := range append([]string{"corpus"}, below...) {
		objects, err := readYAML[Object](corpusFiles, folder)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	pods := map[string]Object{}
	for _, o := range all {
		if o["kind"] == "Pod" {
			pods[nameOf(o)], _ = o["spec"].(Object)
		}
	}
	out := Corpus{}
	for _, o := range all {
		i := slices.IndexFunc(kinds, func(k *Kind) bool {
			return o["kind"] == k.Kind && o["apiVersion"] == k.gvk().GroupVersion().String() && k.dual == dual(o)
		})
		if i < 0 {
			return nil, fmt.Errorf("corpus: no kind %v %v", o["apiVersion"], o["kind"])
		}
		full, err := expand(o, pods)
		if err != nil {
			return nil, err
		}
		if m := full.(Object)["metadata"].(Object); kinds[i].Strategy.NamespaceScoped() {
			m["namespace"] = namespaceName
		}
		out[kinds[i].ID()] = append(out[kinds[i].ID()], full.(Object))
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

// readYAML reads all documents of the files of a folder.
func readYAML[T any](files embed.FS, folder string) (all []T, err error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range entries {
		if f.IsDir() {
			continue
		}
		data, err := files.ReadFile(folder + "/" + f.Name())
		if err != nil {
			return nil, err
		}
		d := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(data))
		for {
			var raw json.RawMessage
			if err := d.Decode(&raw); err == io.EOF {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name(), err)
			}
			if len(raw) == 0 || string(raw) == "null" {
				continue
			}
			var o T
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name(), err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// expand resolves "from" fields.
func expand(v any, pods map[string]Object) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			x, err := expand(v[i], pods)
			if err != nil {
				return nil, err
			}
			v[i] = x
		}
	case Object:
		for key, x := range v {
			o, _ := x.(Object)
			if from, ok := o["from"].(string); ok && key == "spec" {
				base, found := pods[from]
				if !found {
					return nil, fmt.Errorf("corpus: no pod %q", from)
				}
				merged := maps.Clone(base)
				maps.Copy(merged, o)
				delete(merged, "from")
				v[key] = merged
				continue
			}
			x, err := expand(x, pods)
			if err != nil {
				return nil, err
			}
			v[key] = x
		}
	}
	return v, nil
}
