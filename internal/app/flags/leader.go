package flags

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// leaderFlags are the flags for the election of leaders of other components.
type leaderFlags struct{ app.LeaderElection }

func (f *leaderFlags) add(flags *pflag.FlagSet) {
	flags.DurationVar(&f.LeaseDuration, "coordinated-leadership-lease-duration", app.DefaultLeaseDuration,
		"with the feature gate CoordinatedLeaderElection, time after which another server elects leaders in place of one that has failed")
	flags.DurationVar(&f.RenewDeadline, "coordinated-leadership-renew-deadline", app.DefaultRenewDeadline,
		"time after which a server that cannot renew its Lease stops electing leaders")
	flags.DurationVar(&f.RetryPeriod, "coordinated-leadership-retry-period", app.DefaultRetryPeriod,
		"interval of renewals of the Lease, and of attempts to acquire it")
}

// check returns the error of kube-apiserver for the flags.
func (f *leaderFlags) check() error {
	var errs []error
	if f.LeaseDuration <= f.RenewDeadline {
		errs = append(errs, errors.New("--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline"))
	}
	if f.RenewDeadline <= f.RetryPeriod {
		errs = append(errs, errors.New("--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period"))
	}
	return errors.Join(errs...)
}
