package etcdkv

import "context"

// Size implements kv.Sizer: it is that of the database of the first member.
func (s *Store) Size(ctx context.Context) (int64, error) {
	status, err := s.client.Status(ctx, s.options.Endpoints[0])
	if err != nil {
		return 0, err
	}
	return status.DbSize, nil
}
