package etcdkv

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/internal/store/kv"
)

// Compact implements kv.Backend.
func (s *Store) Compact(caller context.Context, revision int64) error {
	ctx, done, err := s.begin(caller)
	if err != nil {
		return err
	}
	defer done()
	if revision <= kv.Latest {
		return nil
	}
	_, err = s.client.Compact(ctx, revision)
	if err == nil || errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return s.readError(caller, err, revision)
}

// compactKey is the key by which kube-apiservers elect a compactor. Its version counts the
// compactions; its value is the revision of the last one.
const compactKey = "compact_rev_key"

// Retain is kv.Retain for a shared etcd: of all its servers, and of all kube-apiservers, one compacts
// in each interval, to the revision of an interval ago. It returns when ctx ends or the store is
// closed.
func (s *Store) Retain(ctx context.Context, interval time.Duration, failed func(error)) error {
	c := compactor{store: s}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return kv.ErrClosed
		case <-ticker.C:
		}
		if err := c.step(ctx); err != nil && ctx.Err() == nil && s.ctx.Err() == nil {
			failed(err)
		}
	}
}

// A compactor remembers the state of the previous interval: the count of compactions and the revision.
type compactor struct {
	store    *Store
	version  int64
	revision int64
}

// step compacts unless another server has done so since the last step. The server that increments the
// version is the one to compact.
func (c *compactor) step(caller context.Context) error {
	ctx, done, err := c.store.begin(caller)
	if err != nil {
		return err
	}
	defer done()
	resp, err := c.store.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Version(compactKey), "=", c.version)).
		Then(clientv3.OpPut(compactKey, strconv.FormatInt(c.revision, 10))).
		Else(clientv3.OpGet(compactKey)).
		Commit()
	if err != nil {
		return unavailable(err)
	}
	before := c.revision
	c.revision = resp.Header.Revision
	if !resp.Succeeded {
		if found := resp.Responses[0].GetResponseRange().Kvs; len(found) > 0 {
			c.version = found[0].Version
		} else {
			c.version = 0
		}
		return nil
	}
	c.version++
	return c.store.Compact(caller, before)
}
