// Package programs names the Go modules that published operators are built from.
//
// go.mod lists the programs as tools. All are built with one version of each module, so that
// building the second takes a part of the time of the first. It is a module of its own because
// their requirements are many.
package programs
