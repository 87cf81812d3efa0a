// Package published names the Go modules whose manifests are applied.
//
// Only the YAML files in the modules are needed. go.mod requires them and go.sum has their
// checksums. It is a module of its own, so their requirements do not change the versions that
// anything is built with.
package published
