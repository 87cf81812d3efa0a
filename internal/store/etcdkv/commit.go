package etcdkv

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/internal/store/kv"
)

// The time that a write waits for a connection, and the interval of its checks.
const (
	connectTimeout = 3 * time.Second
	connectRetry   = 50 * time.Millisecond
)

// Commit implements kv.Backend. It is one transaction: it compares where the keys
// are, and reads them if they are not where they should be.
func (s *Store) Commit(caller context.Context, w kv.Write) (int64, error) {
	if err := caller.Err(); err != nil {
		return 0, err
	}
	if limit := s.options.MaxValueBytes; w.Size() > limit {
		return 0, &kv.TooLargeError{Size: w.Size(), Limit: limit}
	}
	if !s.enter() {
		return 0, kv.ErrClosed
	}
	defer s.commits.Done()
	if err := s.where.err(); err != nil {
		return 0, err
	}
	begun := time.Now()
	resp, err := s.transact(caller, &w)
	s.metrics.called(operation(&w), w.Key, begun, err)
	if err != nil {
		return 0, commitError(err, w.Size())
	}
	if !resp.Succeeded {
		return 0, s.conflict(&w, resp.Responses)
	}
	s.saw(resp.Header.Revision)
	s.expect(resp.Header.Revision)
	return resp.Header.Revision, nil
}

// enter admits a write unless the store is closed.
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
func (s *Store) transact(caller context.Context, w *kv.Write) (*clientv3.TxnResponse, error) {
	var compares []clientv3.Cmp
	var changes, reads []clientv3.Op
	for c := range w.All() {
		compares = append(compares, s.condition(c))
		changes = append(changes, s.change(c))
		reads = append(reads, clientv3.OpGet(s.External(c.Key)))
	}
	for _, g := range w.Guards {
		guarded := s.External(g.Key)
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(guarded), "=", g.Revision))
		reads = append(reads, clientv3.OpGet(guarded, clientv3.WithKeysOnly()))
	}
	ctx, cancel := context.WithTimeout(caller, callTimeout)
	defer cancel()
	for until := time.Now().Add(connectTimeout); ; {
		ctx, attempt := attempting(ctx)
		resp, err := s.client.Txn(ctx).If(compares...).Then(changes...).Else(reads...).Commit()
		err = attempt.outcome(err)
		if err == nil || !errors.As(err, new(unsentError)) || time.Now().After(until) || s.ctx.Err() != nil {
			return resp, err
		}
		select {
		case <-time.After(connectRetry):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// condition returns the comparison for a change. No key is at revision -1.
func (s *Store) condition(c kv.Change) clientv3.Cmp {
	revision := c.Expect
	if !c.Possible() {
		revision = -1
	}
	return clientv3.Compare(clientv3.ModRevision(s.External(c.Key)), "=", revision)
}

func (s *Store) change(c kv.Change) clientv3.Op {
	if c.Value == nil {
		return clientv3.OpDelete(s.External(c.Key))
	}
	return clientv3.OpPut(s.External(c.Key), string(c.Value))
}

// conflict returns the conflict of the first key with an unexpected revision. The responses are those
// of the changes and then of the guards.
func (s *Store) conflict(w *kv.Write, read []*pb.ResponseOp) error {
	at := func(i int, key string) kv.Record {
		if found := read[i].GetResponseRange().GetKvs(); len(found) > 0 {
			return kv.Record{Key: key, Value: found[0].Value, Revision: found[0].ModRevision}
		}
		return kv.Record{Key: key}
	}
	changed := func(i int, c kv.Change) error {
		actual := at(i, c.Key)
		if actual.Revision == c.Expect && c.Possible() {
			return nil
		}
		if actual.Revision != kv.Absent {
			actual.Value = value(actual.Value)
		}
		return &kv.ConflictError{Key: c.Key, Expected: c.Expect, Actual: actual}
	}
	if err := changed(0, w.First()); err != nil {
		return err
	}
	for i, g := range w.Guards {
		if actual := at(1+len(w.With)+i, g.Key); actual.Revision != g.Revision {
			return &kv.ConflictError{Key: g.Key, Expected: g.Revision, Actual: actual}
		}
	}
	for i, c := range w.With {
		if err := changed(1+i, c); err != nil {
			return err
		}
	}
	return kv.ErrUncertain // etcd contradicts itself
}
