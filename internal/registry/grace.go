package registry

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// graceTime is the effect of a delete on the grace period of an object.
type graceTime int

const (
	none   graceTime = iota // no grace period, or it is over
	begins                  // the period begins, becomes shorter, or is set to 0
	runs                    // the present period is at most the requested one; nothing changes
)

// grace sets the grace period of t, a copy of a stored object. It writes the period to options.
func (r *Registry) grace(d *resource.Definition, t object.Tree, options *metav1.DeleteOptions) graceTime {
	if d.GracePeriod == nil {
		return none
	}
	asked := options.GracePeriodSeconds
	if asked != nil && *asked < 0 {
		asked = new(int64(1))
	}
	if !object.Deleting(t) {
		seconds := d.GracePeriod(t, asked)
		if seconds < 0 {
			seconds = 1
		}
		options.GracePeriodSeconds = &seconds
		r.setDeletion(t, seconds)
		return begins
	}
	had := gracePeriod(t)
	switch {
	case had == 0:
		return none
	case asked == nil || *asked >= had:
		options.GracePeriodSeconds = &had
		return runs
	}
	r.shorten(t, had, *asked)
	options.GracePeriodSeconds = asked
	return begins
}

// shorten reduces the grace period of t. If the new one is over already, one second remains for the
// kubelet; a period of 0 ends at once.
func (r *Registry) shorten(t object.Tree, had, seconds int64) {
	now := r.now()
	ends, ok := object.DeletionTime(t)
	if ends = ends.Add(time.Duration(seconds-had) * time.Second); !ok || ends.Before(now) {
		ends = now
		if seconds != 0 {
			seconds = 1
		}
	}
	object.SetMetaString(t, "deletionTimestamp", object.Timestamp(ends))
	object.Metadata(t)["deletionGracePeriodSeconds"] = seconds
}

// setDeletion sets the deletion time and the grace period of t. An earlier deletion time stays.
func (r *Registry) setDeletion(t object.Tree, seconds int64) {
	ends := r.now().Add(time.Duration(seconds) * time.Second)
	if was, ok := object.DeletionTime(t); !ok || was.After(ends) {
		object.SetMetaString(t, "deletionTimestamp", object.Timestamp(ends))
	}
	object.Metadata(t)["deletionGracePeriodSeconds"] = seconds
}

// gracePeriod returns the grace period in seconds of an object that is being deleted.
func gracePeriod(t object.Tree) int64 {
	seconds, _ := object.Metadata(t)["deletionGracePeriodSeconds"].(int64)
	return seconds
}

// afterMark returns the options for the removal of a marked object.
func afterMark(options *metav1.DeleteOptions, marked object.Tree) *metav1.DeleteOptions {
	options = options.DeepCopy()
	options.GracePeriodSeconds = new(int64(0))
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
		p.ResourceVersion = new(object.ResourceVersion(marked))
	}
	return options
}
