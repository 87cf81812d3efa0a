package etcdkv

import (
	"context"
	"slices"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// slotHeader makes the etcd client use a stream for each slot. etcd reports the progress of a stream
// only if all its watches have caught up, so a watch that reads the history must not share a stream.
// Slots are reused, because a stream may outlive its watch.
const slotHeader = "anykind-watch"

// openStream lets a watch open one stream of etcd. After a broken stream, the etcd client would resume
// the watch without noticing that etcd was restored from a backup. A new watch starts with a read,
// which notices it.
func (s *Store) openStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	sent, _ := metadata.FromOutgoingContext(ctx)
	slots := sent.Get(slotHeader)
	if len(slots) != 1 {
		return open(ctx, desc, cc, method, options...)
	}
	slot, err := strconv.Atoi(slots[0])
	if err != nil {
		return nil, err
	}
	if w := s.at(slot); w != nil && w.begun.Load() {
		return nil, status.Error(codes.Aborted, "the connection of the watch broke")
	}
	opened, err := open(ctx, desc, cc, method, options...)
	if err != nil {
		return nil, err
	}
	return &stream{ClientStream: opened, store: s, slot: slot}, nil
}

// at is the watch of a slot, nil if there is none.
func (s *Store) at(slot int) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot >= len(s.watches) {
		return nil
	}
	return s.watches[slot]
}

// A stream is an etcd stream of a watch. The etcd client buffers all messages without a limit, and a
// fragmented response until it is complete. While the consumer has enough, a stream receives nothing,
// so that etcd waits. It turns each fragment into a response of its own.
type stream struct {
	grpc.ClientStream
	store *Store
	slot  int
	rest  []*mvccpb.Event // of a revision that the next part may go on with
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	for {
		if w := s.store.at(s.slot); w != nil {
			w.unread.Room()
		}
		if err := s.ClientStream.RecvMsg(m); err != nil {
			return err
		}
		if response, ok := m.(*pb.WatchResponse); !ok || s.completeRevisions(response) {
			return nil
		}
	}
}

// completeRevisions turns a part into a response of complete revisions. It reports false if there is none.
func (s *stream) completeRevisions(r *pb.WatchResponse) bool {
	if len(s.rest) > 0 {
		r.Events = append(s.rest, r.Events...)
		s.rest = nil
	}
	if !r.Fragment || len(r.Events) == 0 {
		return true
	}
	last := r.Events[len(r.Events)-1].Kv.ModRevision
	end := slices.IndexFunc(r.Events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision == last })
	s.rest = slices.Clone(r.Events[end:])
	r.Events, r.Fragment = r.Events[:end], false
	return end > 0
}
