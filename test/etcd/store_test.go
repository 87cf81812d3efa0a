package etcd

import (
	"testing"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/kv/etcdkv"
	"github.com/anykind/anykind/internal/kv/kvtest"
)

const limit = 1 << 20

// open opens a store in an etcd of its own: revisions are of the whole of etcd.
func open(t testing.TB) kv.Backend {
	t.Helper()
	s, err := etcdkv.Open(etcdkv.Options{Endpoints: []string{Start(t)}, Prefix: "/registry", MaxValueBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	kvtest.Run(t, open, kvtest.ValueLimit(limit), kvtest.Except(kvtest.OneRevision))
}

func BenchmarkContract(b *testing.B) {
	kvtest.Bench(b, open)
}
