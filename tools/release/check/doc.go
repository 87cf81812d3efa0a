// Package check makes two whole releases from two clones of the commit that is checked out, compares
// every byte, and does with the files what their readers do: starts the programs that this machine
// can start, runs the image's program as its user in an empty root, and reads pages, scripts and the
// SBOM with published programs. It takes long, so go test does it only with -release.
package check
