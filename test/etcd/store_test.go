package etcd

import (
	"testing"

	"github.com/anykind/anykind/internal/store/etcdkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
	"github.com/anykind/anykind/internal/store/transform"
)

const limit = 1 << 20

// open opens a store in an etcd of its own: revisions are global in an etcd.
func open(t testing.TB) kv.Backend { return openFor(t, limit) }

func openFor(t testing.TB, maxBytes int) kv.Backend {
	t.Helper()
	s, err := etcdkv.Open(etcdkv.Options{Endpoints: []string{Start(t)}, Prefix: "/registry", MaxValueBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	kvtest.Run(t, open, kvtest.ValueLimit(limit), kvtest.Except(kvtest.OneRevision, kvtest.NoNotes))
}

// Transformed values fulfil the contract, too.
func TestContractOfTransformedValues(t *testing.T) {
	kvtest.Run(t, func(t testing.TB) kv.Backend {
		return transform.New(openFor(t, limit+2*kvtest.SealedMore), kvtest.NewSealed(t), transform.Options{MaxValueBytes: limit})
	}, kvtest.ValueLimit(limit), kvtest.Except(kvtest.OneRevision, kvtest.NoNotes))
}

func BenchmarkContract(b *testing.B) {
	kvtest.Bench(b, open)
}
