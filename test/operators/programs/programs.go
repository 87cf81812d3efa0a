// Package programs lists the Go modules of published operators.
//
// go.mod lists the programs as tools. All are built with one version of each module, so that builds
// share most packages. It is a module of its own because of the many requirements.
package programs
