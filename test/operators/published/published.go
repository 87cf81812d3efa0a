// Package published lists the Go modules whose manifests, definitions and examples tests read.
//
// Tests need only the YAML files in the modules. go.mod requires them and go.sum has their checksums.
// A module of its own keeps their requirements away from all builds.
package published
