package boltkv_test

import (
	"os"
	"testing"
)

// These variables turn the test binary into a child of one of its tests, for a data directory.
const (
	crashDirVariable = "ANYKIND_CRASH_DIR"
	fullDirVariable  = "ANYKIND_FULL_DIR"
	inUseDirVariable = "ANYKIND_IN_USE_DIR"
)

func TestMain(m *testing.M) {
	for variable, child := range map[string]func(dir string){
		crashDirVariable: crashChild,
		fullDirVariable:  fullChild,
		inUseDirVariable: inUseChild,
	} {
		if dir := os.Getenv(variable); dir != "" {
			child(dir)
		}
	}
	os.Exit(m.Run())
}
