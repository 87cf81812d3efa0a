package convert

import (
	"sync"
	"sync/atomic"
	"time"
)

// KeepFor limits the age of a cached conversion. After a webhook is fixed without any notice to the
// server, old conversions stay visible for that time at most. Objects that are read all the time cost
// one call a minute.
const KeepFor = time.Minute

// maxPeers limits the remembered peers of one webhook.
const maxPeers = 64

// kept tracks the validity of the responses of a webhook. Its zero value is ready for use.
type kept struct {
	start   sync.Once
	began   time.Time    // origin of the clock and of spans of KeepFor
	dropped atomic.Int64 // responses to earlier requests are invalid

	mu    sync.Mutex
	peers map[string]bool // peers that have responded
}

// Clock returns the present time, and the time of the oldest request whose response is still
// valid. All responses to requests within one span of KeepFor expire at its end, together with all
// data derived from them in the same span.
func (w *Webhook) Clock() (since, at int64) {
	at = w.kept.now()
	since = at - at%int64(KeepFor)
	return max(since, w.kept.dropped.Load()), at
}

func (k *kept) now() int64 {
	k.start.Do(func() { k.began = time.Now() })
	return int64(time.Since(k.began))
}

// drop invalidates all earlier responses.
func (k *kept) drop() {
	for at := k.now() + 1; ; {
		was := k.dropped.Load()
		if at <= was || k.dropped.CompareAndSwap(was, at) {
			return
		}
	}
}

// saw invalidates the responses of other peers when a new peer responds.
func (k *kept) saw(peer string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.peers[peer] {
		return
	}
	if len(k.peers) > 0 {
		k.drop()
	}
	if k.peers == nil || len(k.peers) == maxPeers {
		k.peers = map[string]bool{}
	}
	k.peers[peer] = true
}
