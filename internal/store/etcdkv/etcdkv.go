// Package etcdkv implements the storage contract with etcd, which other programs may use at the same
// time.
//
// A key is a key of etcd, under a prefix; a revision is etcd's own, of the whole etcd. So objects of a
// kube-apiserver are readable in place, and the reverse. Every read is linearizable, at any member.
//
// A request for the newest revision also requests the progress of the watches. So a consistent read of
// a cache takes two round trips, even if nothing is written.
//
// The package knows the client of etcd. It does not know the meaning of values.
package etcdkv

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/kv"
)

const (
	// callTimeout is the timeout of one call of etcd.
	callTimeout = 10 * time.Second
	// Keepalive of connections: an idle connection is probed, and closed without an answer.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
	// sendMore is the allowance of the client for a request beyond its values. etcd applies its own
	// limit first.
	sendMore = 1 << 20
)

// reconnect is the backoff for unavailable members. With the default, a returning member could stay
// unnoticed for minutes.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

// Options of a Store.
type Options struct {
	// Endpoints are the URLs of etcd's members.
	Endpoints []string
	// TLS is the configuration of connections; nil for http URLs.
	TLS *tls.Config
	// Dial opens connections; nil for the default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Root is the common prefix of all keys. Prefix, which is not empty, replaces it in etcd.
	Root, Prefix string
	// MaxValueBytes limits the bytes of the values of a write; 0 for kv.DefaultMaxValueBytes.
	MaxValueBytes int
	// Resource returns the labels of a key in metrics; nil for none.
	Resource func(key string) (group, resource string)
	// Gates are the feature gates.
	Gates *gate.Set
}

// Store is a kv.Backend.
type Store struct {
	options Options
	client  *clientv3.Client
	ctx     context.Context // ends reads and watches
	cancel  context.CancelFunc
	newest  atomic.Int64 // the newest revision that was seen
	turns   turns
	where   where
	metrics *metrics

	mu      sync.Mutex
	closed  bool
	commits sync.WaitGroup // those under way
	watches []*watch       // by their slots; nil where one is free
}

var _ kv.Backend = (*Store)(nil)

// Open returns the store in an etcd, without asking whether it is there.
func Open(o Options) (*Store, error) {
	if o.Prefix == "" {
		return nil, errors.New("--etcd-prefix is empty")
	}
	if o.MaxValueBytes == 0 {
		o.MaxValueBytes = kv.DefaultMaxValueBytes
	}
	s := &Store{options: o, metrics: newMetrics(o.Resource, o.Gates), where: where{restored: make(chan struct{})}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	dialing := []grpc.DialOption{
		grpc.WithChainStreamInterceptor(s.openStream),
		grpc.WithStatsHandler(sentStats{}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: callTimeout}),
	}
	if o.Dial != nil {
		dialing = append(dialing, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return o.Dial(ctx, "tcp", address)
		}))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            o.Endpoints,
		TLS:                  o.TLS,
		DialTimeout:          callTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize:   o.MaxValueBytes + sendMore,
		DialOptions:          dialing,
		Context:              context.Background(),
		Logger:               zap.NewNop(),
	})
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.client = client
	return s, nil
}

// Close implements kv.Backend.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.commits.Wait()
	if again {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// begin limits a read by the life of the store and a timeout.
func (s *Store) begin(caller context.Context) (context.Context, func(), error) {
	if err := caller.Err(); err != nil {
		return nil, nil, err
	}
	if s.ctx.Err() != nil {
		return nil, nil, kv.ErrClosed
	}
	if err := s.where.err(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(caller, callTimeout)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// External returns the etcd key for a key of the contract. It also works for prefixes, even for
// those shorter than Root.
func (s *Store) External(key string) string {
	if rest, ok := strings.CutPrefix(key, s.options.Root); ok {
		return s.options.Prefix + rest
	}
	return s.options.Prefix
}

// inside returns our key for one of etcd.
func (s *Store) inside(key []byte) string {
	return s.options.Root + string(key[len(s.options.Prefix):])
}

// value returns a value of a response; an empty one arrives as nil.
func value(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}

// saw notes that a revision has happened.
func (s *Store) saw(revision int64) {
	for {
		newest := s.newest.Load()
		if revision <= newest || s.newest.CompareAndSwap(newest, revision) {
			return
		}
	}
}
