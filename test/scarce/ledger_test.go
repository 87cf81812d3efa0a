package scarce

import (
	"strings"
	"testing"
)

// The checker finds each violation.
func TestLedgerFinds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		known  map[string]*life
		change func(*Stored)
		want   string // in the error; "" for none
	}{
		{name: "what was acknowledged", change: func(*Stored) {}},
		{name: "an address twice", change: func(s *Stored) { s.Services["b"] = "10.0.0.1" }, want: "have 10.0.0.1"},
		{name: "a port twice", change: func(s *Stored) { s.Services["b"] += ", port 30000" }, want: "have port 30000"},
		{name: "another address", change: func(s *Stored) {
			s.Services["a"], s.Addresses["10.0.0.9"] = "10.0.0.9, port 30000", "a"
			delete(s.Addresses, "10.0.0.1")
		}, want: "a: it has 10.0.0.9, port 30000, and was given 10.0.0.1, port 30000"},
		{name: "an address without a record", change: func(s *Stored) { delete(s.Addresses, "10.0.0.1") }, want: `whose IPAddress is of ""`},
		{name: "a record without a Service", change: func(s *Stored) { s.Addresses["10.0.0.3"] = "gone" }, want: "10.0.0.3 is of gone"},
		{name: "a lost Service", change: func(s *Stored) { delete(s.Services, "a"); delete(s.Addresses, "10.0.0.1") }, want: "a: it was created, and is not there"},
		{name: "a Service that came back", known: map[string]*life{"b": {have: true, remove: done}}, change: func(*Stored) {}, want: "b: it was deleted, and is there"},
		{name: "a Service without a create", change: func(s *Stored) { s.Services["c"] = "" }, want: "c is stored without a create"},
		{name: "another node", change: func(s *Stored) { s.Pods["p"] = Pod{Node: "n2"} }, want: `on node "n2", and was bound to n1`},
		{name: "a node without a binding", known: map[string]*life{"p": {kind: ofPod, have: true}}, change: func(*Stored) {}, want: "without a binding"},
		{name: "a binding without an answer", known: map[string]*life{"p": {kind: ofPod, have: true, tried: map[string]bool{"n1": true}}}, change: func(*Stored) {}},
		{name: "a binding that was lost", change: func(s *Stored) { s.Pods["p"] = Pod{} }, want: `on node "", and was bound to n1`},
		{name: "a pod that is revived", known: map[string]*life{"p": {kind: ofPod, have: true, node: "n1", remove: done}}, change: func(*Stored) {}, want: "it is not being deleted"},
		{name: "a pod that was forced away, and came back", known: map[string]*life{"p": {kind: ofPod, have: true, node: "n1", force: done}}, change: func(*Stored) {}, want: "it was deleted, and is there"},
		{name: "a deletion without a request", change: func(s *Stored) { s.Pods["p"] = Pod{"n1", true} }, want: "deleted without a request"},
		{name: "an eviction more than is allowed", known: map[string]*life{"g": {kind: ofGuarded, have: true, node: "there", remove: done}}, change: func(s *Stored) {
			s.Allowed, s.Pods["g"] = 2, Pod{"there", true}
		}, want: "of 2 disruptions 2 are left"},
		{name: "an eviction", known: map[string]*life{"g": {kind: ofGuarded, have: true, node: "there", remove: done}}, change: func(s *Stored) {
			s.Pods["g"] = Pod{"there", true}
		}},
		{name: "a disruption that is lost", change: func(s *Stored) { s.Allowed = 0 }, want: "2 disruptions of 2 are used, and there were 1 evictions"},
		{name: "an evicted pod that is gone", change: func(s *Stored) { delete(s.Pods, "g") }, want: "g: it was created, and is not there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLedger()
			l.granted, l.evictions = 2, 1
			l.lives = map[string]*life{
				"a": {have: true, held: "10.0.0.1, port 30000"}, "b": {have: true},
				"p": {kind: ofPod, have: true, node: "n1"}, "g": {kind: ofGuarded, have: true, node: "there"},
			}
			for name, known := range tt.known {
				l.lives[name] = known
			}
			s := Stored{
				Services:  map[string]string{"a": "10.0.0.1, port 30000", "b": "10.0.0.2"},
				Addresses: map[string]string{"10.0.0.1": "a", "10.0.0.2": "b"},
				Pods:      map[string]Pod{"p": {Node: "n1"}, "g": {Node: "there"}},
				Allowed:   1,
			}
			tt.change(&s)
			err := l.Verify(s, true)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("found %v, and there is nothing to find", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("found %v, want %q", err, tt.want)
			}
		})
	}
}

// If two binders got a success, one of these is a violation.
func TestLedgerFindsTwoBinders(t *testing.T) {
	l := NewLedger()
	l.ask("p", &life{kind: ofPod, have: true})
	l.bound("p", "n1")
	l.bound("p", "n2")
	if err := l.Verify(Stored{Pods: map[string]Pod{"p": {Node: "n2"}}}, true); err == nil || !strings.Contains(err.Error(), "p was bound to n1 and to n2") {
		t.Errorf("found %v", err)
	}
}
