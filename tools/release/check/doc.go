// Package check makes two whole releases from two clones of the commit that is checked out, and
// compares every byte. It then uses the files as their users do: it starts the programs for this
// machine, runs the image's program as its user in an empty root, and reads pages, scripts and the
// SBOM with published programs. It takes long, so go test does it only with -release.
package check
