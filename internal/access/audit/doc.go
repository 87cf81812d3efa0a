// Package audit writes the audit log: an event for each stage of a request, as audit.k8s.io/v1 has it.
//
// A Policy decides how much of a request is logged. A Log begins a Record for each request that its
// Policy selects. The filters and handlers add to the Record, and it sends an event to each sink of the
// Log at the stages that the Policy does not omit. A sink is a file with rotation or a webhook; its
// Delivery decides whether a request waits for it, and bounds the memory of events that wait.
//
// An event is encoded once for all sinks. Without a Log a request costs a comparison with nil.
//
// The package knows requests and their attributes. It does not know objects, media types or filters.
package audit
