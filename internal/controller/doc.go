// Package controller runs controllers inside the server, as a controller manager does in a cluster.
//
// A controller writes objects as a consequence of other objects. Each one is a package below this
// one, with one subject: emptying a namespace, deleting objects whose owners are gone. It names the
// keys that it observes, decides which tasks follow from an event, and does them.
//
// The Engine runs all controllers. It delivers the stored objects once, and then every event of the
// one feed of the store. It runs their tasks in the background and retries failed tasks. An
// Election chooses one of several servers to run the Engine. Objects reads and writes stored
// objects; only it knows the registry.
//
// A controller without tasks has no goroutine and no watch. Most controllers remember no objects,
// and read the objects that a task needs. A task may be done twice, by two servers at once, or be
// continued by another server.
//
// The package knows keys, the metadata of objects, and the namespaces and definitions that several
// controllers need. It knows no controller: internal/app lists them. The wing imports all wings
// before it.
//
// Begin with serviceaccount, the shortest controller, then engine.go.
package controller
