package memkv_test

import (
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/memkv"
)

const limit = 1 << 20

func open(testing.TB) kv.Backend {
	return memkv.New(memkv.Options{MaxValueBytes: limit})
}

func TestContract(t *testing.T) {
	kvtest.Run(t, open, kvtest.ValueLimit(limit))
}

func BenchmarkContract(b *testing.B) {
	kvtest.Bench(b, open)
}
