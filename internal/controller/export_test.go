package controller

import "context"

// What the tests of an election know of it, which are in a package of their own
// because the world they are in imports this one.
const (
	RenewPeriod   = renewPeriod
	LeaseDuration = leaseDuration
)

// Try takes the Lease once.
func (e *Election) Try(ctx context.Context) (bool, error) { return e.try(ctx) }
