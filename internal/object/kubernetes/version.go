// Package kubernetes has the version of Kubernetes that the server implements. Code and tests that name the
// version take it from here. A test compares it with the required modules, and make bump raises both.
package kubernetes

// make bump writes Minor and Patch.
const (
	Major = "1"
	Minor = "37"
	Patch = "1" // with a pre-release, such as 0-alpha.2

	// Name is the release in short, as in OpenAPI documents.
	Name = Major + "." + Minor
	// Number is the version without its v.
	Number = Name + "." + Patch
	// Version is the version of Kubernetes.
	Version = "v" + Number
	// Modules is the version of the Go modules of Kubernetes.
	Modules = "v0." + Minor + "." + Patch
)
