package etcdkv

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/internal/kv"
)

// How long a write waits for a connection to be there, and how often it looks.
const (
	connectPatience = 3 * time.Second
	connectRetry    = 50 * time.Millisecond
)

// Commit implements kv.Backend. It is one transaction: it compares where the keys
// are, and reads them if they are not where they should be.
func (s *Store) Commit(caller context.Context, w kv.Write) (int64, error) {
	if err := caller.Err(); err != nil {
		return 0, err
	}
	if limit := s.options.MaxValueBytes; limit > 0 && len(w.Value) > limit {
		return 0, &kv.TooLargeError{Size: len(w.Value), Limit: limit}
	}
	if !s.enter() {
		return 0, kv.ErrClosed
	}
	defer s.commits.Done()
	if err := s.where.err(); err != nil {
		return 0, err
	}
	if w.Value == nil && w.Expect == kv.Absent {
		return 0, s.nothingToDelete(caller, w)
	}
	resp, err := s.transact(caller, w)
	if err != nil {
		return 0, commitError(err, len(w.Value))
	}
	if !resp.Succeeded {
		return 0, s.conflict(w, resp.Responses)
	}
	s.saw(resp.Header.Revision)
	s.expect(resp.Header.Revision)
	return resp.Header.Revision, nil
}

// enter lets a write in unless the store is closed.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.commits.Add(1)
	}
	return !s.closed
}

// transact sends the transaction, again only while it is known that it was not
// sent.
func (s *Store) transact(caller context.Context, w kv.Write) (*clientv3.TxnResponse, error) {
	key := s.outside(w.Key)
	compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", w.Expect)}
	reads := []clientv3.Op{clientv3.OpGet(key)}
	for _, g := range w.Guards {
		guarded := s.outside(g.Key)
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(guarded), "=", g.Revision))
		reads = append(reads, clientv3.OpGet(guarded, clientv3.WithKeysOnly()))
	}
	change := clientv3.OpDelete(key)
	if w.Value != nil && s.options.Encode != nil {
		w.Value = s.options.Encode(w.Key, w.Value)
	}
	if w.Value != nil {
		change = clientv3.OpPut(key, string(w.Value))
	}
	ctx, cancel := context.WithTimeout(caller, patience)
	defer cancel()
	for until := time.Now().Add(connectPatience); ; {
		resp, err := s.client.Txn(ctx).If(compares...).Then(change).Else(reads...).Commit()
		if err == nil || !notSent(err) || time.Now().After(until) || s.ctx.Err() != nil {
			return resp, err
		}
		select {
		case <-time.After(connectRetry):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// conflict says which key was not where the write expected it.
func (s *Store) conflict(w kv.Write, read []*pb.ResponseOp) error {
	at := func(i int, key string) kv.Record {
		if found := read[i].GetResponseRange().GetKvs(); len(found) > 0 {
			return kv.Record{Key: key, Value: found[0].Value, Revision: found[0].ModRevision}
		}
		return kv.Record{Key: key}
	}
	actual := at(0, w.Key)
	if actual.Revision != w.Expect {
		if actual.Revision != kv.Absent {
			actual.Value = s.value(w.Key, actual.Value)
		}
		return &kv.ConflictError{Key: w.Key, Expected: w.Expect, Actual: actual}
	}
	for i, g := range w.Guards {
		if actual := at(i+1, g.Key); actual.Revision != g.Revision {
			return &kv.ConflictError{Key: g.Key, Expected: g.Revision, Actual: actual}
		}
	}
	return kv.ErrUncertain // etcd contradicts itself
}

// nothingToDelete is the conflict of deleting what is expected to be absent.
func (s *Store) nothingToDelete(ctx context.Context, w kv.Write) error {
	record, err := s.Get(ctx, w.Key, kv.Latest)
	if err != nil && err != kv.ErrNotFound {
		return err
	}
	record.Key = w.Key
	return &kv.ConflictError{Key: w.Key, Expected: w.Expect, Actual: record}
}
