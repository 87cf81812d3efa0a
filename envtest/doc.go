// Package envtest runs Kubernetes API servers inside a Go test. It takes the place of the package
// of the same name of controller-runtime: change the import line, and nothing else.
//
//	import "github.com/anykind/anykind/envtest" // was sigs.k8s.io/controller-runtime/pkg/envtest
//
// An Environment then needs no KUBEBUILDER_ASSETS, no etcd and no second process. Its server is in
// the memory of the test, and starts in milliseconds. What a suite relies on is the same: the
// flags of kube-apiserver in ControlPlane, users by AddUser, files of definitions and webhooks, and
// that no controller of kube-controller-manager runs unless it is asked for.
//
// Besides that, there is what a server in another process cannot do:
//
//   - A server for each test. Servers share nothing but what was compiled for equal definitions, so
//     tests run in parallel: StartFor.
//   - A server that begins with what another one holds, however it came to be: Snapshot, and the
//     field From.
//   - Time under control. With the field InMemory, a server, its clients and controllers live in
//     one bubble of testing/synctest. A lease or a token runs out when the test says so.
//   - What goes wrong on demand: Inject has chosen requests refused, delayed, cut off, or answered
//     by a store or a webhook that fails; EndWatches ends watches.
//   - Settle waits until nothing is pending.
//   - Record writes down what was asked and what came of it, in a form for golden files.
//
// # What differs
//
// The types of ControlPlane are those of controller-runtime, but nothing is started that they
// name. Paths of programs, and what is said of etcd, mean nothing. Flags mean what they mean for
// anykind under the name kube-apiserver; it refuses those that it does not have. There is no
// insecure port. The deprecated methods KubeCtl and RESTClientConfig of ControlPlane know of no
// server: use AddUser.
package envtest
