package crash

import (
	"fmt"
	"strings"
	"testing"
)

// The checker finds each violation.
func TestLedgerFinds(t *testing.T) {
	at := func(value, revision int64) version { return version{present: true, value: value, revision: revision} }
	for _, tt := range []struct {
		name   string
		known  version
		open   *version
		stored version
		want   string // in the error; "" for none
	}{
		{name: "what was acknowledged", known: at(1, 10), stored: at(1, 10)},
		{name: "what was deleted", stored: version{}},
		{name: "a lost write", known: at(2, 20), stored: at(1, 10), want: "the last answer said value 2 at revision 20"},
		{name: "a lost object", known: at(1, 10), stored: version{}, want: "a is absent"},
		{name: "a lost deletion", stored: at(1, 10), want: "stored without a write"},
		{name: "an open write that was made", known: at(1, 10), open: &version{present: true, value: 2}, stored: at(2, 11)},
		{name: "an open write that was not made", known: at(1, 10), open: &version{present: true, value: 2}, stored: at(1, 10)},
		{name: "an open deletion that was made", known: at(1, 10), open: &version{}, stored: version{}},
		{name: "neither of the two", known: at(1, 10), open: &version{present: true, value: 2}, stored: at(3, 11), want: "a write without an answer asked for value 2"},
		{name: "an open write at an old revision", known: at(1, 10), open: &version{present: true, value: 2}, stored: at(2, 9), want: "not after"},
		{name: "an open write at a used revision", known: at(1, 10), open: &version{present: true, value: 2}, stored: at(2, 15), want: "was given to b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLedger()
			stored := map[string]version{"b": at(7, 15)}
			if err := l.acknowledge("b", at(7, 15)); err != nil {
				t.Fatal(err)
			}
			if tt.known.present {
				if err := l.acknowledge("a", tt.known); err != nil {
					t.Fatal(err)
				}
			}
			if tt.open != nil {
				l.lose("a", *tt.open)
			}
			if tt.stored.present {
				stored["a"] = tt.stored
			}
			found(t, l.verify(stored), tt.want)
		})
	}
}

func TestLedgerFindsRevisionsThatAreReused(t *testing.T) {
	l := newLedger()
	found(t, l.acknowledge("a", version{present: true, value: 1, revision: 10}), "")
	found(t, l.acknowledge("b", version{present: true, value: 1, revision: 10}), "given to a value 1 and to b value 1")
	found(t, l.acknowledge("a", version{present: true, value: 2, revision: 9}), "not after")
	found(t, l.verify(map[string]version{"a": {present: true, value: 1, revision: 10}}), "")
	found(t, l.acknowledge("c", version{present: true, value: 1, revision: 8}), "before the restart the server was at 10")
}

func TestCounterFinds(t *testing.T) {
	for stored, want := range map[int64]string{9: "10 increments were acknowledged", 10: "", 12: "", 13: "2 had no answer"} {
		c := &counter{}
		c.sure.Store(10)
		c.open.Store(2)
		found(t, c.verify(stored), want)
	}
}

func TestWatcherFinds(t *testing.T) {
	line := func(kind, name string, value, sum, revision int64) string {
		return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"resourceVersion":"%d"},"spec":{"value":%d,"sum":%d}}}`, kind, name, revision, value, sum)
	}
	for _, tt := range []struct{ name, line, want string }{
		{"what is new", line("ADDED", "b", 1, sum(1, ""), 11), ""},
		{"what changed", line("MODIFIED", "a", 2, sum(2, ""), 11), ""},
		{"what is gone", line("DELETED", "a", 1, sum(1, ""), 11), ""},
		{"an event again", line("MODIFIED", "a", 1, sum(1, ""), 10), "after revision 10"},
		{"a creation that was missed", line("MODIFIED", "b", 1, sum(1, ""), 11), "which was absent"},
		{"a deletion that was missed", line("ADDED", "a", 1, sum(1, ""), 11), "which was value 1"},
		{"a torn object", line("MODIFIED", "a", 2, sum(3, ""), 11), "torn"},
		{"an error", `{"type":"ERROR","object":{"kind":"Status","code":410}}`, "410"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWatcher()
			if _, err := w.see([]byte(line("ADDED", "a", 1, sum(1, ""), 10))); err != nil {
				t.Fatal(err)
			}
			_, err := w.see([]byte(tt.line))
			found(t, err, tt.want)
		})
	}
}

// found fails unless err has the text, or is nil for "".
func found(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("found %v, and there is nothing to find", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("found %v, want %q", err, want)
	}
}
