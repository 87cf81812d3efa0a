package controller

import "context"

// A Controller decides what follows from events, and does it.
type Controller interface {
	// Keys returns prefixes of the keys that the controller looks at. "" is for
	// all keys: See is then called for every write of the store.
	Keys() []string
	// See adds to the Queue what follows from an event. It is called for one event
	// after the other, in the order in which they happened, and must not wait for
	// anything.
	See(e *Event)
	// Do does a task. After an error it is called again later. It is called for
	// several tasks at a time, but for one task only once at a time, unless the
	// controller itself tries it in another one.
	Do(ctx context.Context, t Task) error
}

// A Loader is a Controller that wants to know when it is shown everything that is
// stored: before it is shown events, and again after events may have been missed.
type Loader interface {
	Controller
	// Load says that the next events are everything that is stored.
	Load()
	// Loaded says that See was shown all of it. When Load is called again before
	// that, the load is begun anew.
	Loaded()
}

// A Descriptor names a controller and makes it.
type Descriptor struct {
	// Name is the one that kube-controller-manager has for the controller, where
	// it has the same.
	Name string
	// Alias is another name that kube-controller-manager takes for it, or "".
	Alias string
	// Off says that it is not one of those that "*" turns on.
	Off bool
	// Everywhere says that each of the servers of a store runs it, not one of them.
	Everywhere bool
	// Others says that it is shown objects of other servers, too, if it looks at all keys.
	Others bool
	// New makes one for a run of an Engine, which adds its tasks to q. The Objects
	// are shared with other controllers, and not changed.
	New func(o *Objects, q *Queue) Controller
}

// A Task is one thing to do. What its fields mean is the controller's affair, but
// tasks that are equal are one.
type Task struct {
	Do  string // what to do, where a controller does several things
	Key string // mostly of an object, or its name
	UID string // of the object, where another one of the same name is not meant
}
