package request

import "testing"

// A revision before a request's own writes is not Seen, however often the store is read.
func TestSeen(t *testing.T) {
	q := &Request{}
	if _, ok := q.Seen(); ok || q.Began() != 0 {
		t.Error("something is seen before the store was asked")
	}
	q.See(7)
	for range 2 {
		if revision, ok := q.Seen(); !ok || revision != 7 {
			t.Errorf("seen: %d, %t", revision, ok)
		}
	}
	if revision, ok := q.TakeSeen(); !ok || revision != 7 {
		t.Errorf("taken: %d, %t", revision, ok)
	}
	q.See(8)
	if revision, ok := q.Seen(); ok {
		t.Errorf("seen after the first read: %d", revision)
	}
	if _, ok := q.TakeSeen(); ok || q.Began() != 8 {
		t.Errorf("taken twice, or began at %d", q.Began())
	}
	q = &Request{}
	q.TakeSeen() // a read before any See
	q.See(9)
	if revision, ok := q.Seen(); ok {
		t.Errorf("seen after the first read, which asked for itself: %d", revision)
	}
}
