package verdict

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/crdtest"
	"github.com/anykind/anykind/test/corpus"
	"github.com/anykind/anykind/test/program"
)

// Published definitions, and valid and invalid examples.
func TestPublished(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []corpus.Folder
		least int
	}{
		{"gateway-api-standard", []corpus.Folder{corpus.GatewayAPIStandard, corpus.GatewayAPIValid, corpus.GatewayAPIInvalid}, 150},
		{"gateway-api-experimental", []corpus.Folder{corpus.GatewayAPIExperimental, corpus.GatewayAPIValid, corpus.GatewayAPIInvalid}, 150},
		{"cert-manager", []corpus.Folder{corpus.CertManager}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name == "gateway-api-standard" {
				t.Skip("the experimental channel has these definitions with more fields")
			}
			dir := t.TempDir()
			n := 0
			for _, f := range c.files {
				if err := f.Documents(func(_, document string) error {
					n++
					return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.yaml", n)), []byte(document), 0o600)
				}); err != nil {
					t.Fatal(err)
				}
			}
			compared(t, []string{dir}, check.Options{}, c.least)
			compared(t, []string{dir}, check.Options{Validation: "Warn"}, c.least)
		})
	}
}

// Generated definitions like those of a cloud provider.
func TestProvider(t *testing.T) {
	dir := t.TempDir()
	for i, d := range crdtest.Provider() {
		if testing.Short() && i%3 > 0 {
			continue
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.json", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compared(t, []string{dir}, check.Options{}, 10)
}

// The objects of the comparison of built-in kinds with Kubernetes, and the examples of the
// documentation.
func TestBuiltIn(t *testing.T) {
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	compared(t, []string{filepath.Join(top, "test/builtin/corpus"), filepath.Join(top, "docs/examples")}, check.Options{}, 100)
}

func compared(t *testing.T, paths []string, o check.Options, least int) {
	t.Helper()
	counts := Compare(t, paths, o)
	t.Log(counts)
	if counts.Asked < least {
		t.Errorf("%d requests, want %d or more", counts.Asked, least)
	}
}
