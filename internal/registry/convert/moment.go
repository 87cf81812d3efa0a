package convert

import (
	"sync"
	"sync/atomic"
	"time"
)

// KeepFor is how long something that a webhook said may be shown for what it says.
// It is the longest time for which somebody who has mended a webhook sees what it
// answered before, where nothing else told us, and short enough to wait for; and of
// what is read all the time it leaves 1 call in a minute.
const KeepFor = time.Minute

// maxPeers is how many who answer for one webhook are remembered.
const maxPeers = 64

// kept says which answers of a webhook still hold. Its zero value holds all that come.
type kept struct {
	start   sync.Once
	began   time.Time    // what moments are counted from, and spans of KeepFor
	dropped atomic.Int64 // answers that were asked for before are not shown any more

	mu    sync.Mutex
	peers map[string]bool // who has answered
}

// Moment returns the moment at which somebody asks, and that since which answers were
// asked for that still hold. All that is asked for in a span of KeepFor holds until
// its end, and so does what is made of an answer in the same span, whoever makes it.
func (w *Webhook) Moment() (since, at int64) {
	at = w.kept.now()
	since = at - at%int64(KeepFor)
	return max(since, w.kept.dropped.Load()), at
}

func (k *kept) now() int64 {
	k.start.Do(func() { k.began = time.Now() })
	return int64(time.Since(k.began))
}

// drop makes what was asked for until now hold no longer.
func (k *kept) drop() {
	for at := k.now() + 1; ; {
		was := k.dropped.Load()
		if at <= was || k.dropped.CompareAndSwap(was, at) {
			return
		}
	}
}

// saw drops what others have said when somebody answers who has not answered before.
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
