package etcdkv

import (
	"errors"
	"sync"

	"github.com/anykind/anykind/internal/kv"
)

const (
	// unreadBytes is how much of a watch may wait for its consumer.
	unreadBytes = 8 << 20
	// eventBytes is what an event takes beside its key and its values.
	eventBytes = 200
)

// errBehind ends a watch of etcd whose consumer does not keep up. It is begun again
// where the consumer is, when it has taken what was there.
var errBehind = errors.New("the consumer of the watch is behind")

// unread is what etcd has told and the consumer has not taken. The client of etcd
// would keep any amount of it.
type unread struct {
	mu      sync.Mutex
	batches []kv.Batch
	bytes   int
	ended   error         // why there is no more
	changed chan struct{} // has room for one
}

// put adds a batch, and reports whether there may be more.
func (u *unread) put(batch kv.Batch) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := len(u.batches) - 1
	if len(batch.Events) == 0 && last >= 0 {
		u.batches[last].Revision = batch.Revision
	} else {
		u.batches = append(u.batches, batch)
		u.bytes += sizeOf(batch)
	}
	u.wake()
	return u.bytes <= unreadBytes
}

// end says that nothing more will be put.
func (u *unread) end(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = err
	u.wake()
}

func (u *unread) wake() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// take returns the oldest batch, when there is one, and why there is none when there
// never will be.
func (u *unread) take() (kv.Batch, error) {
	for {
		if batch, ok, err := u.first(); ok || err != nil {
			return batch, err
		}
		<-u.changed
	}
}

func (u *unread) first() (batch kv.Batch, ok bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.batches) == 0 {
		return kv.Batch{}, false, u.ended
	}
	batch = u.batches[0]
	u.batches[0] = kv.Batch{}
	u.batches = u.batches[1:]
	u.bytes -= sizeOf(batch)
	return batch, true, nil
}

func sizeOf(batch kv.Batch) (size int) {
	for i := range batch.Events {
		e := &batch.Events[i]
		size += len(e.Key) + len(e.Value) + len(e.Prev) + eventBytes
	}
	return size
}
