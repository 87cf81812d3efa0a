package registry

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// graceTime is what a deletion makes of the time that an object has to end.
type graceTime int

const (
	none   graceTime = iota // it has none, or has had it
	begins                  // it has it from now on, or less of it than before, or is told that it has none
	runs                    // it has no more of it than is asked for now, and nothing changes
)

// grace gives t, which is a copy of a stored object, time to end. The options say how
// much of it afterwards.
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

// shorten gives t less time than it had. If it has had that already, it still has a
// second, for somebody sees to it that it ends; unless it shall end at once.
func (r *Registry) shorten(t object.Tree, had, seconds int64) {
	now := r.now()
	ends, err := time.Parse(time.RFC3339, object.MetaString(t, "deletionTimestamp"))
	if ends = ends.Add(time.Duration(seconds-had) * time.Second); err != nil || ends.Before(now) {
		ends = now
		if seconds != 0 {
			seconds = 1
		}
	}
	object.SetMetaString(t, "deletionTimestamp", object.Timestamp(ends))
	object.Metadata(t)["deletionGracePeriodSeconds"] = seconds
}

// setDeletion says in t that it is to be gone after so many seconds. One that was to be
// gone earlier is so still.
func (r *Registry) setDeletion(t object.Tree, seconds int64) {
	ends := r.now().Add(time.Duration(seconds) * time.Second)
	was, err := time.Parse(time.RFC3339, object.MetaString(t, "deletionTimestamp"))
	if err != nil || was.After(ends) {
		object.SetMetaString(t, "deletionTimestamp", object.Timestamp(ends))
	}
	object.Metadata(t)["deletionGracePeriodSeconds"] = seconds
}

// gracePeriod is how many seconds an object has that is being deleted.
func gracePeriod(t object.Tree) int64 {
	seconds, _ := object.Metadata(t)["deletionGracePeriodSeconds"].(int64)
	return seconds
}

// afterMark are the options by which an object is removed that was marked.
func afterMark(options *metav1.DeleteOptions, marked object.Tree) *metav1.DeleteOptions {
	options = options.DeepCopy()
	options.GracePeriodSeconds = new(int64(0))
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
		p.ResourceVersion = new(object.ResourceVersion(marked))
	}
	return options
}
