package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// parseHistory parses flags of serve.
func parseHistory(args ...string) (*Serve, error) {
	var f Serve
	all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.Add(all)
	return &f, all.Parse(args)
}

func TestHistory(t *testing.T) {
	if f, err := parseHistory(); err != nil || f.history != (keeping{}) {
		t.Errorf("without the flag: %v %v", f.history, err)
	}
	for value, want := range map[string]keeping{
		"30d":         {Keep: 30 * day},
		"12h":         {Keep: 12 * time.Hour},
		"1d12h":       {Keep: 36 * time.Hour},
		"0.5d":        {Keep: 12 * time.Hour},
		"2GiB":        {MaxBytes: 2 << 30},
		"2Gi":         {MaxBytes: 2 << 30},
		"500MB":       {MaxBytes: 500_000_000},
		"30d,2GiB":    {Keep: 30 * day, MaxBytes: 2 << 30},
		"2GiB, 90m":   {Keep: 90 * time.Minute, MaxBytes: 2 << 30},
		"forever":     {},
		"10000d,1TiB": {Keep: 10000 * day, MaxBytes: 1 << 40},
	} {
		want.On = true
		f, err := parseHistory("--history=" + value)
		if err != nil || f.history != want {
			t.Errorf("%s: %+v %v, want %+v", value, f.history, err, want)
		}
		var again keeping
		if err := again.Set(f.history.String()); err != nil || again != want {
			t.Errorf("%s: String is %q, which is %+v %v", value, f.history.String(), again, err)
		}
	}
	for _, value := range []string{"", "30", "x", "30days", "1d,2d", "1GiB,2GiB", "0d", "0", "-3d", "-1GiB", "forever,1d", "30d,", "9999999999d", "d", "1d-3d", "1.5"} {
		_, err := parseHistory("--history=" + value)
		if err == nil || !strings.Contains(err.Error(), "--history") || !strings.Contains(err.Error(), "want") || !strings.Contains(err.Error(), "forever") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// --history-interval has resources with times, and may be repeated.
func TestHistoryInterval(t *testing.T) {
	f, err := parseHistory("--history=30d", "--history-interval=leases.coordination.k8s.io=1h,events=10m", "--history-interval=widgets.example.com=1d")
	if err != nil {
		t.Fatal(err)
	}
	const want = "events=10m0s,leases.coordination.k8s.io=1h0m0s,widgets.example.com=24h0m0s"
	var again intervals
	if got := f.historyEvery.String(); got != want || again.Set(got) != nil || again.String() != want {
		t.Errorf("intervals %s, and from these %s, want %s", got, again.String(), want)
	}
	if o := f.history.remembering(f.historyEvery); o.Keep != 30*day || len(o.Intervals) != 3 {
		t.Errorf("the options are %+v", o)
	}
	for _, value := range []string{"", "1h", "events", "=1h", "events=", "events=0s", "events=5", "events=-1h", "events=999ms", "events=1h,,leases=1h"} {
		if _, err := parseHistory("--history-interval=" + value); err == nil || !strings.Contains(err.Error(), "--history-interval") || !strings.Contains(err.Error(), "want a resource and a time") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
