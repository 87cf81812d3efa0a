package verify

import (
	mathrand "math/rand"
	"os"
	"runtime"
	"testing"
	"testing/cryptotest"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// repeatable makes runs of the process repeatable until undo: one processor, so that the order of
// goroutines depends on little else than their channels.
func repeatable(t *testing.T) (undo func()) {
	processors := runtime.GOMAXPROCS(1)
	t.Setenv("GODEBUG", os.Getenv("GODEBUG")+",randseednop=0")
	return func() { runtime.GOMAXPROCS(processors) }
}

// seedRandom seeds the sources of random numbers of a run: uids, generated names, and the jitter of
// clients.
func seedRandom(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	reseed(seed, 0)
}

// reseed seeds the sources that the program itself draws from, for one of its lives.
func reseed(seed uint64, life int) {
	source := int64(seed) + int64(life)<<32
	utilrand.Seed(source)
	//lint:ignore SA1019 client-go draws its jitter from the global source
	mathrand.Seed(source)
}
