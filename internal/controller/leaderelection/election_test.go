package leaderelection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// read returns the election of a text: a line for each candidate, with its name, emulation version, binary
// version and strategy, and the seconds since it was renewed, pinged and created. The line "lease HOLDER RENEWED" is
// a Lease of 15 seconds. "-" is a missing value.
func read(t *testing.T, text string) *election {
	e := &election{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	ago := func(seconds string) *metav1.MicroTime {
		if seconds == "-" {
			return nil
		}
		d, err := time.ParseDuration(seconds + "s")
		if err != nil {
			t.Fatal(err)
		}
		return &metav1.MicroTime{Time: e.now.Add(-d)}
	}
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "lease":
			e.lease.HolderIdentity, e.lease.RenewTime = new(strings.Trim(words[1], "-")), ago(words[2])
			e.lease.LeaseDurationSeconds = new(int32(15))
		default:
			c := &candidate{}
			c.Name = words[0]
			c.Spec.EmulationVersion = strings.Trim(words[1], "-")
			c.Spec.BinaryVersion = words[2]
			c.Spec.Strategy = coordinationv1.CoordinatedLeaseStrategy(words[3])
			c.Spec.RenewTime, c.Spec.PingTime = ago(words[4]), ago(words[5])
			c.CreationTimestamp = ago(words[6]).Time
			e.candidates = append(e.candidates, c)
		}
	}
	return e
}

// Answers of candidates decide: the lowest emulation version, then binary version, then the first created one. The
// newest binaries select the strategy.
func TestResult(t *testing.T) {
	for _, tt := range []struct{ name, candidates, want string }{
		{"lowest emulation version", `
			a 1.37.0 1.37.0 OldestEmulationVersion 0 - 9
			b 1.36.0 1.37.0 OldestEmulationVersion 0 - 1`, "OldestEmulationVersion b"},
		{"then binary version", `
			a 1.36.0 1.37.0 OldestEmulationVersion 0 - 9
			b 1.36.0 1.37.0-rc.1 OldestEmulationVersion 0 - 1`, "OldestEmulationVersion b"},
		{"versions are numbers", `
			a 1.10.0 1.37.0 OldestEmulationVersion 0 - 9
			b 1.9.0 1.37.0 OldestEmulationVersion 0 - 1`, "OldestEmulationVersion b"},
		{"then age", `
			a 1.36.0 1.37.0 OldestEmulationVersion 0 - 1
			b 1.36.0 1.37.0 OldestEmulationVersion 0 - 9`, "OldestEmulationVersion b"},
		{"no answer for five seconds", `
			a 1.37.0 1.37.0 OldestEmulationVersion 4 - 9
			b 1.36.0 1.37.0 OldestEmulationVersion 5 - 9`, "OldestEmulationVersion a"},
		{"no emulation version", `
			a 1.37.0 1.37.0 OldestEmulationVersion 0 - 9
			b - 1.36.0 OldestEmulationVersion 0 - 9`, "OldestEmulationVersion a"},
		{"the newest binary has the strategy", `
			a 1.36.0 1.36.0 OldestEmulationVersion 0 - 9
			b 1.37.0 1.37.0 example.com/any 0 - 9`, "example.com/any "},
		{"no answer", `a 1.37.0 1.37.0 OldestEmulationVersion 9 - 9`, "no candidate has answered"},
		{"no versions", `a - 1.37.0 OldestEmulationVersion 0 - 9`, "no candidate has valid versions"},
		{"two strategies", `
			a 1.37.0 1.37.0 OldestEmulationVersion 0 - 9
			b 1.37.0 1.37.0 example.com/any 0 - 9`, "candidates a and b of the same binary version have the strategies OldestEmulationVersion and example.com/any"},
	} {
		strategy, leader, err := read(t, tt.candidates).result()
		got := fmt.Sprint(strategy, " ", leader)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// An election is needed without a holder, after the holder failed, for a better candidate, and for a candidate that may
// no longer run.
func TestNeeded(t *testing.T) {
	for _, tt := range []struct{ name, given, want string }{
		{"no Lease", `a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99`, "true"},
		{"no holder", `
			lease - 3
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99`, "true"},
		{"the best holds it", `
			lease a 3
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99`, "false"},
		{"it has expired", `
			lease a 16
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99`, "true"},
		{"another is better", `
			lease a 3
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99
			b 1.36.0 1.37.0 OldestEmulationVersion 60 - 99`, "true"},
		{"another strategy", `
			lease a 3
			a 1.37.0 1.37.0 example.com/any 60 - 99
			b 1.36.0 1.37.0 example.com/any 60 - 99`, "false"},
		{"an older binary has another strategy", `
			lease a 3
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99
			b 1.36.0 1.36.0 example.com/any 60 - 99`, "true"},
		{"two strategies", `
			lease a 3
			a 1.37.0 1.37.0 example.com/any 60 - 99
			b 1.36.0 1.37.0 OldestEmulationVersion 60 - 99`, "candidates a and b of the same binary version have the strategies example.com/any and OldestEmulationVersion"},
		{"a candidate is silent", `
			lease a 3
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99
			b 1.37.0 1.37.0 OldestEmulationVersion 901 - 99`, "true"},
		{"no versions", `
			lease other 3
			a - 1.37.0 OldestEmulationVersion 60 - 99`, "false"},
	} {
		needed, err := read(t, tt.given).needed()
		got := fmt.Sprint(needed)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A candidate is pinged unless it has just renewed itself. It has five seconds for its answer, and is not pinged again
// without one.
func TestPings(t *testing.T) {
	for _, tt := range []struct{ name, candidates, want string }{
		{"never pinged", `
			a 1.37.0 1.37.0 OldestEmulationVersion 60 - 99
			b 1.37.0 1.37.0 OldestEmulationVersion 5 - 99`, "a b wait"},
		{"just renewed", `a 1.37.0 1.37.0 OldestEmulationVersion 4 - 99`, ""},
		{"an answer is missing", `
			a 1.37.0 1.37.0 OldestEmulationVersion 1 2 99
			b 1.37.0 1.37.0 OldestEmulationVersion 60 2 99`, "wait"},
		{"all have answered", `
			a 1.37.0 1.37.0 OldestEmulationVersion 1 2 99
			b 1.37.0 1.37.0 OldestEmulationVersion 2 2 99`, ""},
		{"no answer came", `
			a 1.37.0 1.37.0 OldestEmulationVersion 1 2 99
			b 1.37.0 1.37.0 OldestEmulationVersion 60 6 99`, ""},
		{"an old answer", `a 1.37.0 1.37.0 OldestEmulationVersion 60 61 99`, "a wait"},
	} {
		due, wait := read(t, tt.candidates).pings()
		var got []string
		for _, c := range due {
			got = append(got, c.Name)
		}
		if wait {
			got = append(got, "wait")
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
