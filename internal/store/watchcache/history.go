package watchcache

import "sort"

const (
	// minHistory is the number of events kept at any size.
	minHistory = 16
	// hotHistory is the number of newest events that keep their derived results.
	hotHistory = 512
)

// history is the recent events of one resource in order of their revisions:
// every event of the resource above floor.
type history struct {
	events []*Event
	floor  int64
	bytes  int64
}

// add appends an event and drops events beyond the limits.
func (h *history) add(e *Event, o *Options) {
	h.events = append(h.events, e)
	h.bytes += e.size()
	if n := len(h.events); n > hotHistory {
		h.events[n-1-hotHistory].memos.forget()
	}
	for n := len(h.events); n > o.HistoryEvents || (h.bytes > o.HistoryBytes && n > minHistory); n-- {
		h.drop(1)
	}
}

// drop forgets the n oldest events.
func (h *history) drop(n int) {
	for i, e := range h.events[:n] {
		h.bytes -= e.size()
		h.floor = e.Revision
		h.events[i] = nil
	}
	h.events = h.events[n:]
}

// after returns the events above a revision, which is not below floor. The result is valid only under
// the lock of the resource.
func (h *history) after(revision int64) []*Event {
	if n := len(h.events); n == 0 || h.events[n-1].Revision <= revision {
		return nil
	}
	return h.events[sort.Search(len(h.events), func(i int) bool { return h.events[i].Revision > revision }):]
}
