// Package verify finds bugs of controllers that faults reveal: crashes between two writes, lost responses,
// conflicts, stale caches, missed events.
//
//	func TestOperator(t *testing.T) {
//		verify.Run(t, verify.World{Start: startManager, CRDDirectoryPaths: paths}, func(s *verify.Scenario) {
//			s.Always("one leader", oneLeader) // in each state of the server
//			s.Apply(cluster)                  // as a user
//			s.Settle()                        // until nothing changes any more
//			s.Delete(cluster)
//			s.Finally("no volumes", noVolumes) // at the end
//		})
//	}
//
// Run executes the scenario a few times without faults and learns the writes of the program, the events
// that it sees, and the state at each Settle. From these it makes plans: one fault at each write and at
// each event. It executes the scenario with each plan, then with combinations of them, until no plan is left or its budget ends. A
// program that is correct reaches the same state with and without faults.
//
// # Findings
//
// A run has a problem if an invariant is broken, if its end differs from the end without faults, if the
// program does not come to rest, if it writes without its Lease, and if it panics or exits. Values that
// differ between runs without faults do not count: generated names, uids, times, and each field that Run
// learns or World.Ignore names. Objects that are only records do not count either: Events and Leases.
//
// Run removes the faults that a problem does not need, repeats the plan, and reports the problem with the
// story of the run: the requests of the program, the events that it saw, the changes in the server,
// and the faults. The environment variable VERIFY_PLAN, or World.Plan, repeats a plan.
//
// # Faults
//
// Each fault is one that a program must expect from kube-apiserver, from a user, or from its machine: see
// [FaultKind]. A Settle ends when faults are over, so the program has time to repair their consequences. World.Inputs
// adds users who change a field of a custom resource and change it back.
//
// # How it works
//
// Server and program are in one bubble of testing/synctest, with the server of package envtest in memory.
// Each request of the program, except discovery and writes of Events, and each event of its watches waits at a gate. A scheduler lets one of
// them pass at a time, when all goroutines of the bubble wait, so a plan leads to the same run again. Time
// passes only when nothing waits at the gate. An hour of backoff costs nothing.
//
// # Requirements
//
// Start must connect with the config of its argument only, and listen on no socket: turn off the metrics and the
// webhooks of a manager. It must return soon after its context ends, and its goroutines must end, too. It
// is called once for each life of the program, in one process, so package variables of
// the program survive a crash. A controller-runtime manager needs SkipNameValidation for that.
//
// The scheduler decides about the order of requests and events, not of goroutines. A program whose
// requests depend on the order of a Go map, or on a race between its goroutines, can behave differently with the same
// plan. A Finding then says in how many of the repeated runs the problem showed.
//
// World.Command is a program in a process of its own, in any language, and in real time: see [ExploreCommand]. It may listen
// on sockets, and keeps no variables after a crash.
//
// A panic in a goroutine of the program that no library recovers ends the process of the test.
package verify
