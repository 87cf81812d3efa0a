package server

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/kv/memkv"
)

// registry begins the keys of a store of anykind.
const registry = "/registry/"

// An etcd answers for the stores of all servers of the process as one etcd would,
// as far as the tests ask: it gets and puts single keys. Each store has the keys
// below a prefix of its own.
type etcd struct {
	etcdserverpb.UnimplementedKVServer
	url *url.URL

	mu     sync.Mutex
	stores map[string]kv.Backend // by prefix
}

// theEtcd is started when it is first needed, and stays.
var theEtcd = sync.OnceValues(func() (*etcd, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &etcd{
		url:    &url.URL{Scheme: "http", Host: listener.Addr().String()},
		stores: map[string]kv.Backend{},
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, e)
	go func() { _ = server.Serve(listener) }()
	return e, nil
})

// lasting is a store that the next server of the same prefix takes over.
type lasting struct{ kv.Backend }

func (lasting) Close() error { return nil }

// store returns the store of a prefix, which may be a new one.
func (e *etcd) store(prefix string) kv.Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stores[prefix] == nil {
		e.stores[prefix] = lasting{memkv.New(memkv.Options{})}
	}
	return e.stores[prefix]
}

// find returns the store that has a key, and the key it has there.
func (e *etcd) find(key []byte) (kv.Backend, string, error) {
	prefix, rest, ok := strings.Cut(strings.TrimPrefix(string(key), "/"), "/")
	if !ok {
		return nil, "", status.Errorf(codes.InvalidArgument, "%q is not of the form /PREFIX/KEY", key)
	}
	return e.store(prefix), registry + rest, nil
}

// Range returns one key.
func (e *etcd) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	out := &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}
	err := e.one(ctx, r.Key, r.RangeEnd, func(_ kv.Backend, record kv.Record) error {
		out.Count = 1
		out.Kvs = []*mvccpb.KeyValue{{Key: r.Key, Value: record.Value, ModRevision: record.Revision}}
		return nil
	})
	return out, err
}

// one does something with the record of a key, if there is one.
func (e *etcd) one(ctx context.Context, key, end []byte, do func(kv.Backend, kv.Record) error) error {
	if len(end) > 0 {
		return status.Error(codes.Unimplemented, "this etcd takes single keys")
	}
	backend, stored, err := e.find(key)
	if err != nil {
		return err
	}
	record, err := backend.Get(ctx, stored, kv.Latest)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return do(backend, record)
}

// Put writes one key, whatever it holds.
func (e *etcd) Put(ctx context.Context, r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	backend, key, err := e.find(r.Key)
	if err != nil {
		return nil, err
	}
	for {
		w := kv.Write{Key: key, Value: append([]byte{}, r.Value...), Expect: kv.Absent}
		record, err := backend.Get(ctx, key, kv.Latest)
		switch {
		case err == nil:
			w.Expect = record.Revision
		case !errors.Is(err, kv.ErrNotFound):
			return nil, err
		}
		revision, err := backend.Commit(ctx, w)
		var conflict *kv.ConflictError
		switch {
		case errors.As(err, &conflict):
			continue
		case err != nil:
			return nil, err
		}
		return &etcdserverpb.PutResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}}, nil
	}
}

// DeleteRange deletes one key.
func (e *etcd) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest) (*etcdserverpb.DeleteRangeResponse, error) {
	out := &etcdserverpb.DeleteRangeResponse{Header: &etcdserverpb.ResponseHeader{}}
	err := e.one(ctx, r.Key, r.RangeEnd, func(backend kv.Backend, record kv.Record) error {
		out.Deleted = 1
		_, err := backend.Commit(ctx, kv.Write{Key: record.Key, Expect: record.Revision})
		return err
	})
	return out, err
}
