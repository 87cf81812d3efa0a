package verify

import (
	mathrand "math/rand"
	"testing"
	"testing/cryptotest"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

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
