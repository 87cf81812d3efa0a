// Package envtest runs Kubernetes API servers inside a Go test. It replaces the package of the same
// name of controller-runtime: change the import line, and nothing else.
//
//	import "github.com/anykind/anykind/envtest" // was sigs.k8s.io/controller-runtime/pkg/envtest
//
// An Environment then needs no KUBEBUILDER_ASSETS, no etcd and no second process. Its server is in the
// memory of the test, and starts in milliseconds. A suite finds the same environment: the flags of
// kube-apiserver in ControlPlane, users by AddUser, files of definitions and webhooks, and no
// controllers of kube-controller-manager by default.
//
// In addition, it offers features that a server in another process cannot have:
//
//   - A server for each test. Servers share only the compiled schemas of equal definitions, so tests run
//     in parallel: StartFor.
//   - A server that begins with the state of another one: Snapshot, and the field From.
//   - Time under control. With the field InMemory, a server, its clients and controllers run in one
//     bubble of testing/synctest. A lease or a token expires when the test advances the time.
//   - Faults on demand: Inject rejects, delays or cuts off chosen requests, or has the store or the
//     webhooks fail for them; EndWatches ends watches.
//   - Settle waits until nothing is pending.
//   - Record writes requests and their outcomes, in a form for golden files.
//
// # Differences
//
// The types of ControlPlane are those of controller-runtime, but the programs that they name do not
// start. Paths of programs and the settings of etcd have no effect. Flags have the meaning that
// anykind gives them under the name kube-apiserver; it rejects unknown ones. There is no insecure
// port. The deprecated methods KubeCtl and RESTClientConfig of ControlPlane know of no server: use
// AddUser.
package envtest
