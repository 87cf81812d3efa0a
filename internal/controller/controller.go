package controller

import "context"

// A Controller decides which tasks follow from events, and does them.
type Controller interface {
	// Keys returns the key prefixes that the controller observes. "" observes all keys: See is then
	// called for every write of the store.
	Keys() []string
	// See queues the tasks that follow from an event. It is called for one event at a time, in
	// order, and must not block.
	See(e *Event)
	// Do does a task. After an error it is called again later. Different tasks run concurrently,
	// equal tasks do not, except through Queue.Try.
	Do(ctx context.Context, t Task) error
}

// A Loader is a Controller that needs to know when a load of all stored objects begins and ends. A
// load comes before the first events, and again after events may have been missed.
type Loader interface {
	Controller
	// Load begins a load: the next events are all stored objects.
	Load()
	// Loaded ends a load. If Load is called before that, the load begins again.
	Loaded()
}

// A Descriptor has the name and the constructor of a controller.
type Descriptor struct {
	// Name is the name in kube-controller-manager, if it has the same controller.
	Name string
	// Alias is an older name that kube-controller-manager also accepts, or "".
	Alias string
	// Off excludes the controller from "*".
	Off bool
	// Everywhere runs the controller on every server of a store, not on the elected one.
	Everywhere bool
	// Term elects the server of a store that runs the controller, apart from the others; nil for the
	// Term of the others.
	Term *Term
	// Aggregated also delivers objects of other servers, if the controller observes all keys.
	Aggregated bool
	// New returns a controller for a run of an Engine, which adds its tasks to q. The Objects are
	// shared with other controllers and read-only.
	New func(o *Objects, q *Queue) Controller
}

// A Task is one piece of work. The controller defines the fields. Equal tasks are the same task.
type Task struct {
	Do  string // the type of work, if there are several
	Key string // usually the key of an object, or its name
	UID string // of the object, to exclude a new object of the same name
}
