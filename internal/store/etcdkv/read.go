package etcdkv

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/internal/store/kv"
)

// pageRecords is the page size of a call.
const pageRecords = 1000

// Get implements kv.Backend.
func (s *Store) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	begun := time.Now()
	resp, err := s.get(ctx, s.External(key), revision)
	s.metrics.called(opGet, key, begun, err)
	if err != nil {
		return kv.Record{}, err
	}
	if len(resp.Kvs) == 0 {
		return kv.Record{}, kv.ErrNotFound
	}
	found := resp.Kvs[0]
	return kv.Record{Key: key, Value: value(found.Value), Revision: found.ModRevision}, nil
}

// get reads one state of etcd, and converts its errors.
func (s *Store) get(caller context.Context, key string, revision int64, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, done, err := s.begin(caller)
	if err != nil {
		return nil, err
	}
	defer done()
	if revision < 0 {
		return nil, s.compacted(caller, revision)
	}
	before := s.where.now()
	before.revision = s.newest.Load()
	resp, err := s.client.Get(ctx, key, append(options, clientv3.WithRev(revision))...)
	if err != nil {
		return nil, s.readError(caller, err, revision)
	}
	if err := s.where.follow(before, resp.Header); err != nil {
		return nil, err
	}
	s.saw(resp.Header.Revision)
	return resp, nil
}

// List implements kv.Backend. It reads page by page at the revision of the first one, so that every
// response is small and all are of one state.
func (s *Store) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	from := s.External(r.Prefix)
	end := clientv3.GetPrefixRangeEnd(from)
	if r.After != "" {
		from = max(from, s.External(r.After)+"\x00")
	}
	page := kv.Page{Revision: r.Revision}
	for {
		limit := pageRecords
		if r.Limit > 0 {
			limit = min(limit, r.Limit-len(page.Records))
		}
		begun := time.Now()
		resp, err := s.get(ctx, from, page.Revision, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)))
		s.metrics.called(opList, r.Prefix, begun, err)
		if err != nil {
			return kv.Page{}, err
		}
		if page.Revision == kv.Latest {
			page.Revision = resp.Header.Revision
		}
		for _, found := range resp.Kvs {
			page.Records = append(page.Records, kv.Record{Key: s.inside(found.Key), Value: value(found.Value), Revision: found.ModRevision})
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return page, nil
		}
		if r.Limit > 0 && len(page.Records) >= r.Limit {
			page.More = true
			return page, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}
