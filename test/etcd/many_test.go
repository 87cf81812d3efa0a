package etcd

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/etcdkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
)

// Many is one store through several: each call goes to the next one.
type many struct {
	stores []kv.Backend
	calls  atomic.Uint64
}

func (m *many) next() kv.Backend { return m.stores[m.calls.Add(1)%uint64(len(m.stores))] }

func (m *many) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	return m.next().Get(ctx, key, revision)
}

func (m *many) List(ctx context.Context, r kv.Range) (kv.Page, error) { return m.next().List(ctx, r) }

func (m *many) Commit(ctx context.Context, w kv.Write) (int64, error) { return m.next().Commit(ctx, w) }

func (m *many) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return m.next().Watch(ctx, prefix, after)
}

func (m *many) Revision(ctx context.Context) (int64, error) { return m.next().Revision(ctx) }

func (m *many) Compact(ctx context.Context, revision int64) error {
	return m.next().Compact(ctx, revision)
}

func (m *many) Close() (err error) {
	for _, s := range m.stores {
		err = errors.Join(err, s.Close())
	}
	return err
}

// openMany opens three stores in one etcd of three members, and starts the faults, if any.
func openMany(t testing.TB, o etcdkv.Options, disturb func(c *Cluster, ways []*Proxy)) kv.Backend {
	t.Helper()
	c := StartCluster(t)
	m := &many{}
	var ways []*Proxy
	for range 3 {
		o.Endpoints = nil
		for _, member := range c.Members {
			way := NewProxy(t, strings.TrimPrefix(member.Client, "http://"))
			ways = append(ways, way)
			o.Endpoints = append(o.Endpoints, "http://"+way.Address())
		}
		s, err := etcdkv.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		m.stores = append(m.stores, s)
	}
	disturb(c, ways)
	return m
}

// Three stores over an etcd of three members fulfil the contract of one store, with each call on
// another one.
//
// A watch on one store learns its progress in time if that store gets reads or writes; it need not
// learn of writes through another store whose events it filters out.
//
// With faults, two more errors are allowed: that the store is unavailable, and that the outcome of a
// write is unknown. Those calls are retried, as a client does (see patient); everything else is as
// without faults.
func TestContractInTrouble(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	var troubles, retries atomic.Int64
	over := time.Now().Add(*duration)
	open := func(t testing.TB) kv.Backend {
		// A short run includes only the most productive tests.
		if name := t.Name(); *duration < time.Minute && !strings.Contains(name, "/Model/0") && !strings.Contains(name, "/all_watches_see") {
			t.Skip("only in a run of minutes: make trouble")
		}
		if *duration >= time.Minute && time.Now().After(over) {
			t.Skip("there was trouble for as long as there was to be")
		}
		b := openMany(t, etcdkv.Options{Prefix: "/registry"}, func(c *Cluster, ways []*Proxy) {
			disturb(t, rand.New(rand.NewPCG(random.Uint64(), 0)), c, ways, &troubles)
		})
		return &patient{Backend: b, retries: &retries}
	}
	for first := true; first || *duration >= time.Minute && time.Now().Before(over) && !t.Failed(); first = false {
		kvtest.Run(t, open, kvtest.Except(kvtest.LateProgress, kvtest.UncertainWrites, kvtest.OneRevision, kvtest.NoNotes))
	}
	t.Logf("%d calls were made again after %d troubles", retries.Load(), troubles.Load())
}

// The same without faults and without retries.
func TestContractThroughThree(t *testing.T) {
	if *duration < time.Minute {
		t.Skip("only in a run of minutes: make trouble")
	}
	kvtest.Run(t, func(t testing.TB) kv.Backend {
		return openMany(t, etcdkv.Options{Prefix: "/registry", MaxValueBytes: limit}, func(*Cluster, []*Proxy) {})
	}, kvtest.ValueLimit(limit), kvtest.Except(kvtest.LateProgress, kvtest.OneRevision, kvtest.NoNotes))
}

// disturb injects faults until the end of the test: it kills or freezes members, and breaks or
// silences connections, always for less than the timeout of a call.
func disturb(t testing.TB, random *rand.Rand, c *Cluster, ways []*Proxy, count *atomic.Int64) {
	ctx, cancel := context.WithCancel(t.Context())
	var making sync.WaitGroup
	t.Cleanup(func() { cancel(); making.Wait() })
	hold := func(most time.Duration) {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(most)))):
		case <-ctx.Done():
		}
	}
	making.Go(func() {
		for ; ctx.Err() == nil; count.Add(1) {
			m, way := c.Members[random.IntN(len(c.Members))], ways[random.IntN(len(ways))]
			switch random.IntN(20) {
			case 0:
				m.Kill()
				hold(200 * time.Millisecond)
				m.Begin()
				hold(2 * time.Second)
			case 1:
				m.Freeze()
				hold(time.Second)
				m.Thaw()
			case 2, 3:
				way.Cut(silent)
				hold(500 * time.Millisecond)
				way.Heal()
			default:
				way.Cut(broken)
				hold(20 * time.Millisecond)
				way.Heal()
			}
			hold(50 * time.Millisecond)
		}
	})
}
