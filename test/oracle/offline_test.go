package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/offline/check"
	offline "github.com/anykind/anykind/test/verdict"
)

// Random definitions, some of them invalid, and random objects of them get the same verdict offline as
// over HTTP.
func TestOfflineRandom(t *testing.T) {
	dir := t.TempDir()
	written := 0
	write := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		written++
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.json", written)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(volume(*cases)) {
		g := newGenerator(seed)
		props := g.root()
		if g.one(2) {
			g.restrict(props)
		}
		if g.one(10) {
			g.spoil(props)
		}
		group := fmt.Sprintf("n%d.example.com", seed)
		write(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "crontabs." + group},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "crontabs", "kind": "CronTab"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": props}}},
			},
		})
		for i := range 5 {
			obj := g.whole(props, 10)
			obj["apiVersion"] = group + "/v1"
			if metadata, ok := obj["metadata"].(map[string]any); ok && metadata["name"] == nil {
				metadata["name"] = fmt.Sprintf("object-%d", i)
			}
			write(obj)
		}
	}
	for _, validation := range []string{"Strict", "Ignore"} {
		counts := offline.Compare(t, []string{dir}, check.Options{Validation: validation})
		if t.Logf("%s: %v", validation, counts); counts.Accepted == 0 || counts.Refused == 0 {
			t.Error("either nothing is right, or nothing is wrong")
		}
	}
}
