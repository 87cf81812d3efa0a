package etcdkv

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/anykind/anykind/internal/store/kv"
)

// A position is the position of etcd in a response: within one cluster, neither the term of its leader
// nor its revision ever decreases from one linearizable read to the next.
type position struct {
	cluster, term uint64
	revision      int64 // also from writes and watches
}

// where is the last known position of etcd, and whether it went back.
type where struct {
	mu       sync.Mutex
	seen     position
	back     *kv.RestoredError
	restored chan struct{} // closed when it went back
}

// now returns the position before a read.
func (w *where) now() position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// err returns an error if etcd was restored to an earlier state.
func (w *where) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.back == nil {
		return nil
	}
	return w.back
}

// follow compares the response of a linearizable read with the position of etcd before the read. An
// impossible successor means that etcd was restored from a backup.
func (w *where) follow(before position, h *pb.ResponseHeader) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	other := before.cluster != 0 && before.cluster != h.ClusterId
	if w.back == nil && (other || h.RaftTerm < before.term || h.Revision < before.revision) {
		w.back = &kv.RestoredError{Was: before.revision, Now: h.Revision}
		close(w.restored)
	}
	if w.back != nil {
		return w.back
	}
	w.seen.cluster, w.seen.term = h.ClusterId, max(w.seen.term, h.RaftTerm)
	return nil
}
