package fairness

import (
	"math"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/utils/ptr"
)

// A share is the part of a level in the seats of the server.
type share struct {
	level   *level
	spec    *flowcontrolv1.PriorityLevelConfigurationSpec
	queuing queuing
	leaving bool // the level was deleted

	nominal         int // configured seats
	lowest, highest int // without those that it lends, with those that it borrows
	limit           int // now
	most            int // of a request; 0 for the default
	target          float64
}

// shares returns the number of shares of a level.
func (s *share) shares() int32 {
	if l := s.spec.Limited; l != nil {
		return ptr.Deref(l.NominalConcurrencyShares, 30)
	}
	return ptr.Deref(s.spec.Exempt.NominalConcurrencyShares, 0)
}

// wish is a level's part in an allocation of seats: its target, within bounds.
type wish struct{ target, low, high float64 }

// smallestTarget replaces smaller targets, so that every level has a proportion.
const smallestTarget = 0.001

// allocate distributes seats: each level gets the same multiple of its target, within its bounds.
// Both are returned. The sum of the lower bounds must be at most seats.
func allocate(seats float64, wishes []wish) (given []float64, fair float64) {
	given = make([]float64, len(wishes))
	fill := func(multiple float64) (sum float64) {
		for i, w := range wishes {
			given[i] = min(max(multiple*max(w.target, smallestTarget), w.low), w.high)
			sum += given[i]
		}
		return sum
	}
	// The sum is linear between the multiples at which a level reaches a bound.
	var turns []float64
	for _, w := range wishes {
		t := max(w.target, smallestTarget)
		turns = append(turns, w.low/t, w.high/t)
	}
	slices.Sort(turns)
	for i, t := range turns {
		sum := fill(t)
		if sum < seats {
			continue
		}
		if fair = t; i > 0 && sum > seats {
			fair = between(seats, wishes, turns[i-1], t)
		}
		fill(fair)
		return given, fair
	}
	if len(turns) > 0 {
		fair = turns[len(turns)-1]
		fill(fair)
	}
	return given, fair
}

// between returns the multiple with the sum seats, between two multiples without a bound in between.
func between(seats float64, wishes []wish, from, to float64) float64 {
	var free float64
	for _, w := range wishes {
		switch t := max(w.target, smallestTarget); {
		case w.low/t >= to:
			seats -= w.low
		case w.high/t <= from:
			seats -= w.high
		default:
			free += t
		}
	}
	return seats / free
}

// lend adapts the limits of levels to their demand in the last period: levels without demand lend
// seats, others borrow them. It returns the multiple of its demand that each level gets.
func lend(shares []*share, total int) (fair float64) {
	rest := total
	var lowest, needed int
	var limited []*share
	var wishes []wish
	for _, s := range shares {
		l := s.level
		now := l.lock()
		l.demand.turn(now)
		d := l.demand
		l.mu.Unlock()
		if l.exempt {
			// Its requests are not limited; the others get the rest.
			s.limit = max(s.lowest, d.peak)
			s.target = float64(s.limit)
			rest -= s.limit
			continue
		}
		// A level may have used its nominal seats in the last period: they are not lent.
		low := max(s.lowest, min(s.nominal, d.peak))
		s.target = max(float64(low), d.smoothed)
		limited = append(limited, s)
		wishes = append(wishes, wish{s.target, float64(low), float64(s.highest)})
		lowest += s.lowest
		needed += low
	}
	switch {
	case rest <= lowest:
		for _, s := range limited {
			s.limit = s.lowest
		}
	case rest <= needed:
		part := float64(rest-lowest) / float64(needed-lowest)
		for i, s := range limited {
			s.limit = s.lowest + int(math.Round((wishes[i].low-float64(s.lowest))*part))
		}
	default:
		var given []float64
		given, fair = allocate(float64(total), wishes)
		for i, s := range limited {
			s.limit = int(math.Round(given[i]))
		}
	}
	return fair
}
