package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/server"
)

// limitFlags are the limits of concurrent requests.
type limitFlags struct {
	reading, writing int
	fair             bool
}

func (f *limitFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.reading, "max-requests-inflight", server.DefaultReading,
		"how many requests that read are answered at a time, watches apart; further ones are rejected with 429; 0 for no limit")
	flags.IntVar(&f.writing, "max-mutating-requests-inflight", server.DefaultWriting,
		"how many requests that write are answered at a time; further ones are rejected with 429; 0 for no limit")
	flags.BoolVar(&f.fair, "enable-priority-and-fairness", true,
		"requests for Leases in kube-node-lease and kube-system wait in a queue of their own and are never rejected, and one of the two limits has to be positive; false counts them among the others")
}

// check returns an error for limits that kube-apiserver rejects.
func (f *limitFlags) check() error {
	switch {
	case f.reading < 0:
		return errors.New("--max-requests-inflight can not be negative value")
	case f.writing < 0:
		return errors.New("--max-mutating-requests-inflight can not be negative value")
	case f.fair && f.reading+f.writing == 0:
		return fmt.Errorf("invalid configuration: MaxRequestsInFlight=%d and MaxMutatingRequestsInFlight=%d; they must add up to something positive", f.reading, f.writing)
	}
	return nil
}

// options returns the limits.
func (f *limitFlags) options() server.Limits {
	limit := func(given int) int {
		if given == 0 {
			return server.Unlimited
		}
		return given
	}
	return server.Limits{Reading: limit(f.reading), Writing: limit(f.writing), Plain: !f.fair}
}
