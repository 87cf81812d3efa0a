package leaderelection

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// answering is the time that a pinged candidate has to renew itself, and for which a renewal proves
	// that a candidate runs.
	answering = 5 * time.Second
	// valid is the time after its last renewal for which a candidate takes part in elections.
	valid = 30 * time.Minute
	// leaseSeconds is the duration of a Lease that an election assigns. The leader sets its own.
	leaseSeconds = 5
)

// assign gives a Lease the result of an election. If the Lease has no holder or has expired, the leader becomes
// its holder. Otherwise the leader becomes its preferredHolder, and the holder has to step down.
func assign(s *coordinationv1.LeaseSpec, strategy coordinationv1.CoordinatedLeaseStrategy, leader string, now time.Time) {
	s.Strategy = &strategy
	switch holder := holderOf(s); {
	case leader == "" || leader == holder:
	case holder == "" || expired(s, now):
		s.HolderIdentity, s.PreferredHolder, s.AcquireTime = &leader, nil, nil
		start(s, now)
	default:
		s.PreferredHolder = &leader
	}
}

// start begins the duration of a Lease.
func start(s *coordinationv1.LeaseSpec, now time.Time) {
	s.RenewTime, s.LeaseDurationSeconds = &metav1.MicroTime{Time: now}, new(int32(leaseSeconds))
}

// A candidate is a stored LeaseCandidate.
type candidate struct {
	Name              string
	UID               types.UID
	CreationTimestamp time.Time
	Spec              coordinationv1beta1.LeaseCandidateSpec

	key, resourceVersion string
}

// expires returns the time when c no longer counts. A candidate without a renewal never counts.
func (c *candidate) expires() time.Time {
	if c.Spec.RenewTime == nil {
		return time.Time{}
	}
	return c.Spec.RenewTime.Add(valid)
}

// unanswered reports whether c was pinged since its last renewal.
func (c *candidate) unanswered() bool {
	ping, renewal := c.Spec.PingTime, c.Spec.RenewTime
	return ping != nil && renewal != nil && renewal.Time.Before(ping.Time)
}

// versions returns the two versions of c; ok is false if it lacks one of them.
func (c *candidate) versions() (emulation, binary *version.Version, ok bool) {
	emulation, missing := version.ParseSemantic(c.Spec.EmulationVersion)
	binary, err := version.ParseSemantic(c.Spec.BinaryVersion)
	return emulation, binary, missing == nil && err == nil
}

// An election is the state of a Lease and of its candidates at one moment. Each step reads this state
// again, so another server can continue an election.
type election struct {
	now        time.Time
	lease      coordinationv1.LeaseSpec // empty if it does not exist
	version    string                   // resourceVersion of the Lease
	candidates []*candidate             // the valid ones
}

// needed reports whether the leader may have to change.
func (e *election) needed() (bool, error) {
	holder := holderOf(&e.lease)
	if holder == "" || expired(&e.lease, e.now) {
		return true, nil
	}
	for _, c := range e.candidates {
		if c.expires().Add(-valid / 2).Before(e.now) {
			return true, nil // a ping proves that it still runs, or it expires
		}
	}
	strategy, err := strategyOf(e.candidates)
	if err != nil || strategy != coordinationv1.OldestEmulationVersion {
		return false, err
	}
	best := oldest(e.candidates)
	return best != nil && best.Name != holder, nil
}

// pings returns the candidates to ping. It reports whether the election has to wait for answers.
func (e *election) pings() (due []*candidate, wait bool) {
	for _, c := range e.candidates {
		ping := c.Spec.PingTime
		switch recent := ping != nil && ping.Add(answering).After(e.now); {
		case recent && c.unanswered():
			wait = true
		case e.answered(c):
		case ping == nil, !recent && !c.unanswered():
			due, wait = append(due, c), true
		}
	}
	return due, wait
}

// answered reports whether c has renewed itself in the last five seconds.
func (e *election) answered(c *candidate) bool { return c.Spec.RenewTime.Add(answering).After(e.now) }

// result returns the strategy, and the leader that it selects. The leader is "" for a strategy of
// another controller.
func (e *election) result() (strategy coordinationv1.CoordinatedLeaseStrategy, leader string, err error) {
	var answered []*candidate
	for _, c := range e.candidates {
		if e.answered(c) {
			answered = append(answered, c)
		}
	}
	if len(answered) == 0 {
		return "", "", errors.New("no candidate has answered")
	}
	strategy, err = strategyOf(answered)
	if err != nil || strategy != coordinationv1.OldestEmulationVersion {
		return strategy, "", err
	}
	best := oldest(answered)
	if best == nil {
		return "", "", errors.New("no candidate has valid versions")
	}
	return strategy, best.Name, nil
}

// strategyOf returns the strategy of the newest binaries.
func strategyOf(candidates []*candidate) (coordinationv1.CoordinatedLeaseStrategy, error) {
	newest, highest := candidates[0], binaryVersion(candidates[0])
	for _, c := range candidates[1:] {
		switch v := binaryVersion(c); {
		case highest.LessThan(v):
			newest, highest = c, v
		case highest.EqualTo(v) && c.Spec.Strategy != newest.Spec.Strategy:
			return "", fmt.Errorf("candidates %s and %s of the same binary version have the strategies %s and %s",
				newest.Name, c.Name, newest.Spec.Strategy, c.Spec.Strategy)
		}
	}
	return newest.Spec.Strategy, nil
}

// binaryVersion returns the binary version of c, or 0.0.0.
func binaryVersion(c *candidate) *version.Version {
	if v, err := version.ParseSemantic(c.Spec.BinaryVersion); err == nil {
		return v
	}
	return version.MustParseSemantic("0.0.0")
}

// oldest returns the candidate with the lowest emulation version, then with the lowest binary version,
// then the one that was created first. It returns nil if no candidate has both versions.
func oldest(candidates []*candidate) (best *candidate) {
	for _, c := range candidates {
		if _, _, ok := c.versions(); ok && (best == nil || precedes(c, best)) {
			best = c
		}
	}
	return best
}

// precedes reports whether a is a better leader than b.
func precedes(a, b *candidate) bool {
	emulationA, binaryA, _ := a.versions()
	emulationB, binaryB, _ := b.versions()
	switch {
	case !emulationA.EqualTo(emulationB):
		return emulationA.LessThan(emulationB)
	case !binaryA.EqualTo(binaryB):
		return binaryA.LessThan(binaryB)
	}
	return a.CreationTimestamp.Before(b.CreationTimestamp)
}

// holderOf returns the holder of a Lease, or "".
func holderOf(s *coordinationv1.LeaseSpec) string {
	if s.HolderIdentity == nil {
		return ""
	}
	return *s.HolderIdentity
}

// expired reports whether the holder of a Lease has not renewed it in time.
func expired(s *coordinationv1.LeaseSpec, now time.Time) bool {
	return s.RenewTime == nil || s.LeaseDurationSeconds == nil ||
		s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second).Before(now)
}
