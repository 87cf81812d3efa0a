package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestHistory(t *testing.T) {
	parse := func(args ...string) (*Serve, error) {
		var f Serve
		all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		f.Add(all)
		return &f, all.Parse(args)
	}
	if f, err := parse(); err != nil || f.history != (keeping{}) {
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
		f, err := parse("--history=" + value)
		if err != nil || f.history != want {
			t.Errorf("%s: %+v %v, want %+v", value, f.history, err, want)
		}
		var again keeping
		if err := again.Set(f.history.String()); err != nil || again != want {
			t.Errorf("%s: String is %q, which is %+v %v", value, f.history.String(), again, err)
		}
	}
	for _, value := range []string{"", "30", "x", "30days", "1d,2d", "1GiB,2GiB", "0d", "0", "-3d", "-1GiB", "forever,1d", "30d,", "9999999999d", "d", "1d-3d", "1.5"} {
		_, err := parse("--history=" + value)
		if err == nil || !strings.Contains(err.Error(), "--history") || !strings.Contains(err.Error(), "want") || !strings.Contains(err.Error(), "forever") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
