package plugin

import (
	"debug/buildinfo"
	"os"
	"testing"
)

// ours reads the block that debug/buildinfo reads: this test is a program of the module.
func TestOurs(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ours(path), info.Main.Path == module; got != want || !want {
		t.Errorf("%s is of %s, and ours says %v", path, info.Main.Path, got)
	}
	for _, other := range []string{"ours.go", "missing", t.TempDir()} {
		if ours(other) {
			t.Errorf("%s is no program of this module", other)
		}
	}
}
