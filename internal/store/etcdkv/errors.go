package etcdkv

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anykind/anykind/internal/store/kv"
)

// readError puts the error of a read at a revision into the words of the
// contract.
func (s *Store) readError(caller context.Context, err error, requested int64) error {
	switch {
	case caller.Err() != nil && s.ctx.Err() == nil:
		return caller.Err()
	case s.ctx.Err() != nil:
		return kv.ErrClosed
	case errors.Is(err, rpctypes.ErrCompacted):
		return s.compacted(caller, requested)
	case errors.Is(err, rpctypes.ErrFutureRev):
		newest, err := s.Revision(caller)
		if err != nil {
			return err
		}
		return &kv.FutureError{Asked: requested, Newest: newest}
	}
	return unavailable(err)
}

func unavailable(err error) error {
	return fmt.Errorf("%w: %v", kv.ErrUnavailable, err)
}

// compacted returns the error for a compacted revision.
func (s *Store) compacted(ctx context.Context, requested int64) error {
	oldest, err := s.oldest(ctx)
	if err != nil {
		return err
	}
	return &kv.CompactedError{Asked: requested, Oldest: oldest}
}

// oldest returns the oldest revision that is not compacted. etcd returns it only to a watch that
// starts too late.
func (s *Store) oldest(caller context.Context) (int64, error) {
	ctx, done, err := s.begin(caller)
	if err != nil {
		return 0, err
	}
	defer done()
	_, err = s.client.Get(ctx, s.options.Prefix, clientv3.WithRev(1), clientv3.WithCountOnly())
	if err == nil {
		return 1, nil
	}
	if !errors.Is(err, rpctypes.ErrCompacted) {
		return 0, s.readError(caller, err, 1)
	}
	for resp := range s.client.Watch(ctx, s.options.Prefix, clientv3.WithRev(1)) {
		if resp.CompactRevision != 0 {
			return resp.CompactRevision, nil
		}
		err = resp.Err()
	}
	return 0, s.readError(caller, err, 1)
}

// commitError converts the error of a write. Unless it is certain that nothing was written, the
// outcome is uncertain.
func commitError(err error, size int) error {
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return kv.ErrFull
	case errors.Is(err, rpctypes.ErrTooManyRequests), errors.Is(err, rpctypes.ErrPermissionDenied):
		return unavailable(err)
	case errors.Is(err, rpctypes.ErrRequestTooLarge), status.Code(err) == codes.ResourceExhausted: // the latter of gRPC itself
		return &kv.TooLargeError{Size: size}
	case errors.As(err, new(unsentError)):
		return unavailable(err)
	}
	return fmt.Errorf("%w: %v", kv.ErrUncertain, err)
}
