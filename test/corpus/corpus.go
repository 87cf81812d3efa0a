// Package corpus reads published CustomResourceDefinitions, for tests and
// measurements that want real ones where they are at hand.
//
// It knows how they lie in files. What is made of them is for who asks.
package corpus

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Small are the folders of a corpus with definitions of a size that one can have
// thousands of.
var Small = []string{"gateway-api/crds/experimental", "cert-manager", "provider-aws"}

// Definitions returns the definitions below folders of root, the first of each name.
// The error is one of fs.ErrNotExist where there is no such folder.
func Definitions(root string, folders ...string) (all []map[string]any, err error) {
	seen := map[string]bool{}
	for _, folder := range folders {
		err := documents(filepath.Join(root, folder), func(object map[string]any) {
			metadata, _ := object["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			if object["kind"] == "CustomResourceDefinition" && !seen[name] {
				seen[name] = true
				all = append(all, object)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// documents calls visit for every YAML document below a folder that may be a
// definition.
func documents(folder string, visit func(object map[string]any)) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq("\n"+string(data), "\n---") {
			if !strings.Contains(document, "kind: CustomResourceDefinition") {
				continue
			}
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			visit(object)
		}
		return nil
	})
}
