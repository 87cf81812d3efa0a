package request

import "testing"

// What a request may have written since is not Seen, however often somebody asks the store.
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
	q.TakeSeen() // by who reads before anybody has asked
	q.See(9)
	if revision, ok := q.Seen(); ok {
		t.Errorf("seen after the first read, which asked for itself: %d", revision)
	}
}
