package etcdkv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Size implements kv.Sizer: it is that of the database of the first member.
func (s *Store) Size(ctx context.Context) (int64, error) {
	status, err := s.client.Status(ctx, s.options.Endpoints[0])
	if err != nil {
		return 0, err
	}
	return status.DbSize, nil
}

// Count implements kv.Counter.
func (s *Store) Count(ctx context.Context, prefix string, revision int64) (int64, error) {
	from := s.External(prefix)
	resp, err := s.get(ctx, from, revision, clientv3.WithRange(clientv3.GetPrefixRangeEnd(from)), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return resp.Count, nil
}
