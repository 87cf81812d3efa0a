package boltkv_test

import (
	"os"
	"testing"
)

// These variables make the test binary be a child of one of its tests, for the
// data directory that they name.
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
