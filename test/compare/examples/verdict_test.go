package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/test/verdict"
)

// All examples get the same verdict offline as over HTTP.
func TestVerdicts(t *testing.T) {
	all, err := Published()
	if err != nil {
		t.Fatal(err)
	}
	dir, least := t.TempDir(), 1000
	if testing.Short() {
		least /= 3
	}
	for i, d := range all {
		if testing.Short() && i%3 > 0 {
			continue
		}
		text := d.Text
		if text == nil {
			text = d.JSON
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.yaml", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	counts := verdict.Compare(t, []string{dir}, check.Options{})
	if t.Logf("%d documents, %v", len(all), counts); counts.Asked < least {
		t.Errorf("%d requests, want %d or more", counts.Asked, least)
	}
}
