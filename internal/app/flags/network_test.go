package flags

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// GOAWAY closes a connection for at most one request of fifty.
func TestGoawayChance(t *testing.T) {
	for value, want := range map[string]float64{"0": 0, "0.001": 0.001, "0.02": 0.02, "0.021": -1, "-0.1": -1, "NaN": -1, "x": -1} {
		var f networkFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.addGoaway(flags)
		err := flags.Parse([]string{"--goaway-chance=" + value})
		switch {
		case want < 0 && (err == nil || value != "x" && !strings.Contains(err.Error(), "can not be less than 0 or greater than 0.02")):
			t.Errorf("%s: %v", value, err)
		case want >= 0 && (err != nil || float64(f.goaway) != want):
			t.Errorf("%s: %v, %v", value, f.goaway, err)
		}
	}
}
