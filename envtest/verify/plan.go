package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Plan is a list of faults for one run. Its text can be given to World.Plan.
type Plan []Fault

// A Fault is one fault of a Plan.
type Fault struct {
	Kind FaultKind
	// Resource is set for Input and for faults of watches: the plural name and the group, such as "pods" or
	// "widgets.example.com".
	Resource string
	// At is the number of the write of the program, or of the event of the resource, from 1. For Shuffle it
	// is a seed.
	At int
}

// A FaultKind says what goes wrong.
type FaultKind string

// The faults. Their durations are those of a program in the process of the test. [ExploreCommand] has the others.
const (
	// CrashBefore kills the program when it sends a write. The write is not executed.
	CrashBefore FaultKind = "crash-before"
	// CrashAfter kills the program after a write, before it receives the response.
	CrashAfter FaultKind = "crash-after"
	// LoseResponse executes a write and closes the connection without a response.
	LoseResponse FaultKind = "lose-response"
	// Fail rejects a write with 500.
	Fail FaultKind = "fail"
	// Conflict rejects an update with 409, as if another client had changed the object.
	Conflict FaultKind = "conflict"
	// Partition cuts the program off from a write on, for a minute: longer than leases live.
	Partition FaultKind = "partition"
	// Hold delays events of a resource from one on, until the program has nothing else to do for five
	// seconds. Its caches are stale until then.
	Hold FaultKind = "hold"
	// Stall delays events of a resource from one on for ten minutes. The user does not wait until they are
	// over.
	Stall FaultKind = "stall"
	// Miss is a Stall after which the events are dropped, and the watch expires. It begins at an event of an object that the user
	// applied: the program never sees the states before the last action of the user.
	Miss FaultKind = "miss"
	// Input makes the user change a field of a custom resource and change it back, with World.Inputs. Its
	// number is that of a value which the schema allows.
	Input FaultKind = "input"
	// Recreate makes the user delete the last applied object before a write of the program, and apply it again
	// when it is gone, with World.Inputs.
	Recreate FaultKind = "recreate"
	// Relist holds events in the same way, and then drops them and expires the watch. The program lists
	// again, and never sees the states between.
	Relist FaultKind = "relist"
	// StaleRestart kills the program after a write. Lists that accept any state (resourceVersion=0) then
	// return the one before that write, as an API server that lags behind does.
	StaleRestart FaultKind = "stale-restart"
	// Rewind kills the program at the end of the Settle after an event. Then lists of the resource that accept any state
	// return the one after that event: the API server has a cache of that age. The later events come when the
	// program has nothing else to do.
	Rewind FaultKind = "rewind"
	// Hurry makes the user act before a write of the program, instead of at the end of Settle.
	Hurry FaultKind = "hurry"
	// Pause suspends the program before a write for an hour, as a virtual machine can be: its requests and its
	// events wait. Then its watches expire.
	Pause FaultKind = "pause"
	// Slow delays a write for 20 seconds, as an admission webhook does. The user acts before it takes effect.
	Slow FaultKind = "slow"
	// SlowResponse delays the response to a write for 20 seconds. The user acts meanwhile.
	SlowResponse FaultKind = "slow-response"
	// LoseLease makes another identity take the Lease of the program before a write. The write fails when a leader
	// must have stopped, and later the Lease is released.
	LoseLease FaultKind = "lose-lease"
	// RemoveFinalizers makes the user remove the finalizers that the program has set on an object of the
	// user, before a write.
	RemoveFinalizers FaultKind = "remove-finalizers"
	// Shuffle orders requests and events of the whole run by a random seed.
	Shuffle FaultKind = "shuffle"
)

// A series is the part of a run that the number of a fault counts.
type series int

const (
	ofWrites series = iota + 1
	ofEvents
	ofInputs
	ofRuns
)

// traits are the properties of each FaultKind.
var traits = map[FaultKind]struct {
	of    series
	hasty bool // the user acts before the program has settled
	drops bool // held events never come
}{
	CrashBefore:      {of: ofWrites},
	CrashAfter:       {of: ofWrites},
	LoseResponse:     {of: ofWrites},
	Fail:             {of: ofWrites},
	Conflict:         {of: ofWrites},
	Partition:        {of: ofWrites},
	StaleRestart:     {of: ofWrites},
	Hurry:            {of: ofWrites, hasty: true},
	Pause:            {of: ofWrites},
	Slow:             {of: ofWrites, hasty: true},
	SlowResponse:     {of: ofWrites, hasty: true},
	LoseLease:        {of: ofWrites},
	Recreate:         {of: ofWrites},
	RemoveFinalizers: {of: ofWrites},
	Hold:             {of: ofEvents},
	Stall:            {of: ofEvents, hasty: true},
	Miss:             {of: ofEvents, hasty: true, drops: true},
	Relist:           {of: ofEvents, drops: true},
	Rewind:           {of: ofEvents},
	Input:            {of: ofInputs},
	Shuffle:          {of: ofRuns},
}

// FaultKinds returns all kinds, in alphabetical order.
func FaultKinds() []FaultKind { return slices.Sorted(maps.Keys(traits)) }

// String returns the text of the fault: its kind, the resource and the number, separated by colons.
func (f Fault) String() string {
	parts := []string{string(f.Kind)}
	if f.Resource != "" {
		parts = append(parts, f.Resource)
	}
	return strings.Join(append(parts, strconv.Itoa(f.At)), ":")
}

// String returns the faults, separated by spaces.
func (p Plan) String() string {
	var out []string
	for _, f := range p {
		out = append(out, f.String())
	}
	return strings.Join(out, " ")
}

// ParsePlan parses the text of a Plan.
func ParsePlan(text string) (Plan, error) {
	var p Plan
	for _, word := range strings.Fields(text) {
		parts := strings.Split(word, ":")
		at, err := strconv.Atoi(parts[len(parts)-1])
		f := Fault{Kind: FaultKind(parts[0]), At: at}
		of := f.Kind.ofResources()
		if of && len(parts) == 3 {
			f.Resource = parts[1]
		}
		if err != nil || at < 1 || traits[f.Kind].of == 0 || of != (f.Resource != "") || of && len(parts) != 3 || !of && len(parts) != 2 {
			return nil, fmt.Errorf("%q is no fault: use KIND:NUMBER, or KIND:RESOURCE:NUMBER for %s, %s, %s, %s, %s and %s", word, Hold, Stall, Miss, Relist, Rewind, Input)
		}
		p = append(p, f)
	}
	return p, nil
}

// ofResources reports whether a fault has a Resource.
func (k FaultKind) ofResources() bool { return k.ofEvents() || traits[k].of == ofInputs }

func (k FaultKind) ofEvents() bool { return traits[k].of == ofEvents }

// stalls reports whether the user acts while the fault holds events.
func (k FaultKind) stalls() bool { return k.ofEvents() && traits[k].hasty }

// hastes reports whether the user acts before the program has settled, so that an action can fail.
func (p Plan) hastes() bool {
	return slices.ContainsFunc(p, func(f Fault) bool { return traits[f.Kind].hasty })
}

// collides reports whether two faults of the plan have the same place, so that one of them has no effect.
func (p Plan) collides() bool {
	places := map[string]bool{}
	for _, f := range p {
		place := fmt.Sprint(traits[f.Kind].of, f.Resource, f.At)
		if f.Kind == Shuffle || f.Kind == Input {
			place = string(f.Kind)
		}
		if places[place] {
			return true
		}
		places[place] = true
	}
	return false
}

// input returns the first Input.
func (p Plan) input() *Fault {
	for i, f := range p {
		if f.Kind == Input {
			return &p[i]
		}
	}
	return nil
}

// seed returns the seed of Shuffle.
func (p Plan) seed() (seed int, shuffled bool) {
	for _, f := range p {
		if f.Kind == Shuffle {
			return f.At, true
		}
	}
	return 0, false
}
