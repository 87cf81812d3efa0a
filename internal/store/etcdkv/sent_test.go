package etcdkv

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anykind/anykind/internal/store/kv"
)

// A member of etcd that commits a transaction and then fails the answer.
type failingMember struct {
	pb.UnimplementedKVServer
	commits atomic.Int64
	fail    func() error
}

func (m *failingMember) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	m.commits.Add(1)
	return nil, m.fail()
}

func openAt(t *testing.T, address string) *Store {
	t.Helper()
	s, err := Open(Options{Endpoints: []string{"http://" + address}, Root: "/registry/", Prefix: "/registry/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A transaction that has reached etcd is sent once, for any text of the error.
func TestSentTransactionsAreNotRepeated(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(server *grpc.Server) error
	}{
		{"the words of a connection that was never there", func(*grpc.Server) error {
			return status.Error(codes.Unavailable, "connection error: desc = \"transport: Error while dialing\"")
		}},
		{"the words of the last connection", func(*grpc.Server) error {
			return status.Error(codes.Unavailable, "last connection error: connection refused")
		}},
		{"the connection is cut before the answer", func(server *grpc.Server) error {
			go server.Stop()
			return status.Error(codes.Unavailable, "stopped")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			member := &failingMember{fail: func() error { return test.fail(server) }}
			pb.RegisterKVServer(server, member)
			ended := make(chan error, 1)
			go func() { ended <- server.Serve(l) }()
			t.Cleanup(func() { server.Stop(); <-ended })
			s := openAt(t, l.Addr().String())
			_, err = s.Commit(t.Context(), kv.Write{Key: "/registry/a", Value: []byte("{}")})
			if !errors.Is(err, kv.ErrUncertain) {
				t.Errorf("the outcome is uncertain, and the error is %v", err)
			}
			if n := member.commits.Load(); n != 1 {
				t.Errorf("etcd got the transaction %d times", n)
			}
		})
	}
}

// A transaction without a connection to send it on has certainly changed nothing.
func TestUnsentTransactionsAreKnown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // a store that has a client waits longer
	defer cancel()
	_, err = openAt(t, address).Commit(ctx, kv.Write{Key: "/registry/a", Value: []byte("{}")})
	if !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
}
