package flags

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/controller/leaderelection"
)

// addLeaders adds the flags for the election of leaders of other components.
func (f *Serve) addLeaders(flags *pflag.FlagSet) {
	t := &f.leaders
	*t = leaderelection.Term()
	flags.DurationVar(&t.Duration, "coordinated-leadership-lease-duration", t.Duration,
		"with CoordinatedLeaderElection, time after which another server replaces a failed one that elects leaders")
	flags.DurationVar(&t.Deadline, "coordinated-leadership-renew-deadline", t.Deadline,
		"time in which a server that elects leaders must renew its Lease")
	flags.DurationVar(&t.Period, "coordinated-leadership-retry-period", t.Period,
		"interval of renewals of that Lease")
}

// checkLeaders returns the error of kube-apiserver for the flags, or of the election that kube-apiserver then cannot
// start.
func (f *Serve) checkLeaders() error {
	switch t := &f.leaders; {
	case t.Duration <= t.Deadline:
		return errors.New("--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline")
	case t.Deadline <= t.Period:
		return errors.New("--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period")
	case t.Period <= 0:
		return errors.New("--coordinated-leadership-retry-period must be greater than zero")
	case t.Deadline <= t.Period*6/5:
		return errors.New("--coordinated-leadership-renew-deadline must be greater than 1.2 times --coordinated-leadership-retry-period")
	}
	return nil
}
