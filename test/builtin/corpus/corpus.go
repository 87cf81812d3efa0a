// Package corpus has valid objects of the built-in kinds.
//
// It knows the files, and nothing about the kinds.
package corpus

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Gated is a folder with objects that are valid only with feature gates.
const Gated = "gated"

//go:embed *.yaml gated/*.yaml
var files embed.FS

// Read returns the objects, in the order of the files, and those in folders below them.
//
// A pod spec, also in a template, may have a field "from" with the name of a pod of the corpus. It
// then inherits the spec of that pod; its own fields take precedence.
func Read(below ...string) ([]map[string]any, error) {
	var all []map[string]any
	for _, folder := range append([]string{"."}, below...) {
		objects, err := ReadYAML[map[string]any](files, folder)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	pods := map[string]map[string]any{}
	for _, o := range all {
		if o["kind"] == "Pod" {
			metadata, _ := o["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			pods[name], _ = o["spec"].(map[string]any)
		}
	}
	for _, o := range all {
		if err := expand(o, pods); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ReadYAML reads all documents of the files of a folder.
func ReadYAML[T any](files fs.FS, folder string) (all []T, err error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, err
	}
	for _, f := range entries {
		if f.IsDir() {
			continue
		}
		data, err := fs.ReadFile(files, path.Join(folder, f.Name()))
		if err != nil {
			return nil, err
		}
		d := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(data))
		for {
			var raw json.RawMessage
			if err := d.Decode(&raw); errors.Is(err, io.EOF) {
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
func expand(v any, pods map[string]map[string]any) error {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if err := expand(x, pods); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, x := range v {
			o, _ := x.(map[string]any)
			if from, ok := o["from"].(string); ok && key == "spec" {
				base, found := pods[from]
				if !found {
					return fmt.Errorf("corpus: no pod %q", from)
				}
				merged := maps.Clone(base)
				maps.Copy(merged, o)
				delete(merged, "from")
				v[key] = merged
				continue
			}
			if err := expand(x, pods); err != nil {
				return err
			}
		}
	}
	return nil
}
