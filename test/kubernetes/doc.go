// Package kubernetes is the top of a module that runs Kubernetes' own tests, as they are
// published in k8s.io/kubernetes, against anykind and against the server they were made for:
//
//   - cmd: test/cmd, the shell suite of kubectl
//   - integration: packages of test/integration that are about the API
//   - e2e: the end-to-end tests of API machinery, with a stand-in for the node
//
// Nothing of them is in the repository. A runner takes them from the module cache to a folder that
// git ignores, puts our program where theirs would be, and compares what passes. Each runner
// has a known.txt, a list of what may fail, each with why.
package kubernetes
