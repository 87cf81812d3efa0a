package etcdkv

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/internal/store/kv"
)

// Lease implements kv.Leaser. The lease that the key had before runs out without it.
func (s *Store) Lease(caller context.Context, key string, value []byte, life time.Duration) error {
	if err := caller.Err(); err != nil {
		return err
	}
	if !s.enter() {
		return kv.ErrClosed
	}
	defer s.commits.Done()
	if err := s.where.err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(caller, callTimeout)
	defer cancel()
	ctx, attempt := attempting(ctx)
	lease, err := s.client.Grant(ctx, max(1, int64(life/time.Second)))
	if err != nil {
		return commitError(attempt.outcome(err), len(value))
	}
	ctx, attempt = attempting(ctx)
	resp, err := s.client.Put(ctx, s.External(key), string(value), clientv3.WithLease(lease.ID))
	if err != nil {
		return commitError(attempt.outcome(err), len(value))
	}
	s.saw(resp.Header.Revision)
	s.expect(resp.Header.Revision)
	return nil
}
