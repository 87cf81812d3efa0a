package kubernetes

import (
	"os"
	"strings"
	"testing"
)

// The version is that of the required modules.
func TestModules(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api", "apimachinery", "apiserver", "client-go"} {
		if want := "\tk8s.io/" + name + " " + Modules + "\n"; !strings.Contains(string(mod), want) {
			t.Errorf("go.mod lacks %q: make bump sets both", strings.TrimSpace(want))
		}
	}
}
