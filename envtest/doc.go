// Package envtest runs Kubernetes API servers inside a Go test. It replaces the package of the same
// name of controller-runtime: change the import line, and nothing else.
//
//	import "github.com/anykind/anykind/envtest" // was sigs.k8s.io/controller-runtime/pkg/envtest
//
// An Environment then needs no KUBEBUILDER_ASSETS, no etcd and no second process. Its server runs
// inside the test process, and starts in milliseconds. Suites find the expected behaviour: the flags
// of kube-apiserver in ControlPlane, users by AddUser, files of definitions and webhooks. Controllers of
// kube-controller-manager do not run unless the field Controllers enables them.
//
// The package adds features that a server in another process cannot have:
//
//   - A server for each test: StartFor. Servers share only compiled schemas of equal definitions, so
//     tests run in parallel.
//   - Snapshots: a server starts from the state of another one, by Snapshot and the field From.
//   - Forks: a copy of a running server, by Fork.
//   - A release: the field Version makes the server one of an older Kubernetes.
//   - Fake time: with the field InMemory, a server, its clients and controllers run in one bubble of
//     testing/synctest, so the test controls the expiry of leases and tokens.
//   - Fault injection: Inject rejects, delays or interrupts selected requests, or fails the store or a
//     webhook; EndWatches ends watches.
//   - WaitIdle waits until nothing is pending.
//   - Observe reports each change of an object, and Objects returns all of them.
//   - Record writes a transcript of requests for golden files.
//
// Package verify injects faults by itself, and reports the bugs that they reveal.
//
// # Differences
//
// The types of ControlPlane are those of controller-runtime, but their programs are not started.
// Paths of programs and settings of etcd have no effect. Flags have the meaning of anykind under the
// name kube-apiserver. It rejects unknown flags. There is no insecure port. The deprecated methods
// KubeCtl and RESTClientConfig of ControlPlane have no server: use AddUser.
package envtest
