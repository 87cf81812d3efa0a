package controller

import "context"

// Exports for the tests of an election. They are in an external package, because controllertest
// imports this one.
const (
	RenewPeriod   = renewPeriod
	LeaseDuration = leaseDuration
)

// Try tries to take the Lease once.
func (e *Election) Try(ctx context.Context) (bool, error) {
	e.complete()
	return e.try(ctx)
}
