// Package tested lists the Go modules of published operators with their suites.
//
// Their tests are built with one version of each module. It is a module of its own because of the many
// requirements, which differ from those of the programs. Most of them are imported by no package: go mod tidy would
// remove them.
package tested
