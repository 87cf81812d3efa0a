package server

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anykind/anykind/internal/kv"
)

// registry begins the keys of a store of anykind.
const registry = "/registry/"

// etcd answers for a store as etcd would, as far as the tests ask: it gets and
// puts single keys.
type etcd struct {
	etcdserverpb.UnimplementedKVServer
	backend  kv.Backend
	prefix   string
	listener net.Listener
	server   *grpc.Server
}

func serveEtcd(backend kv.Backend, prefix string) (*etcd, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &etcd{backend: backend, prefix: "/" + strings.Trim(prefix, "/") + "/", listener: listener, server: grpc.NewServer()}
	etcdserverpb.RegisterKVServer(e.server, e)
	go func() { _ = e.server.Serve(listener) }()
	return e, nil
}

func (e *etcd) stop() { e.server.Stop() }

func (e *etcd) url() *url.URL { return &url.URL{Scheme: "http", Host: e.listener.Addr().String()} }

// key is the key in the store of one that a test names.
func (e *etcd) key(k []byte) string {
	if rest, ok := strings.CutPrefix(string(k), e.prefix); ok {
		return registry + rest
	}
	return string(k)
}

// Range returns one key.
func (e *etcd) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if len(r.RangeEnd) > 0 {
		return nil, status.Error(codes.Unimplemented, "this etcd gets single keys")
	}
	out := &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}
	record, err := e.backend.Get(ctx, e.key(r.Key), kv.Latest)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return out, nil
	case err != nil:
		return nil, err
	}
	out.Count = 1
	out.Kvs = []*mvccpb.KeyValue{{Key: r.Key, Value: record.Value, ModRevision: record.Revision}}
	return out, nil
}

// Put writes one key, whatever it holds.
func (e *etcd) Put(ctx context.Context, r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	key := e.key(r.Key)
	for {
		w := kv.Write{Key: key, Value: append([]byte{}, r.Value...), Expect: kv.Absent}
		record, err := e.backend.Get(ctx, key, kv.Latest)
		switch {
		case err == nil:
			w.Expect = record.Revision
		case !errors.Is(err, kv.ErrNotFound):
			return nil, err
		}
		revision, err := e.backend.Commit(ctx, w)
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
