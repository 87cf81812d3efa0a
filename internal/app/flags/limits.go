package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/server"
)

// limitFlags are the limits of concurrent requests.
type limitFlags struct {
	reading, writing int
	fair             bool
	timeout          time.Duration
}

func (f *limitFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.reading, "max-requests-inflight", server.DefaultReading,
		"with --max-mutating-requests-inflight, the number of seats that priority levels share; without --enable-priority-and-fairness, the maximum number of concurrent non-mutating requests, without watches: further ones are rejected with 429; 0 for no limit")
	flags.IntVar(&f.writing, "max-mutating-requests-inflight", server.DefaultWriting,
		"with --max-requests-inflight, the number of seats that priority levels share; without --enable-priority-and-fairness, the maximum number of concurrent mutating requests: further ones are rejected with 429; 0 for no limit")
	flags.DurationVar(&f.timeout, "request-timeout", server.DefaultTimeout,
		"maximum time of a request that is not a watch or another stream; a client may request a shorter one with ?timeout=")
	flags.BoolVar(&f.fair, "enable-priority-and-fairness", true,
		"dispatch requests by FlowSchemas and PriorityLevelConfigurations, so that no client makes others wait; one of --max-requests-inflight and --max-mutating-requests-inflight must be positive")
}

// check returns an error for limits that kube-apiserver rejects at its start.
func (f *limitFlags) check() error {
	switch {
	case f.reading < 0:
		return errors.New("--max-requests-inflight can not be negative value")
	case f.writing < 0:
		return errors.New("--max-mutating-requests-inflight can not be negative value")
	case f.timeout <= 0:
		return fmt.Errorf("--request-timeout: %v is not positive: every request would fail", f.timeout)
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
	return server.Limits{Reading: limit(f.reading), Writing: limit(f.writing)}
}
