// Package tested names the Go modules of published operators whose suites are run.
//
// Their tests are built with one version of each module. It is a module of its own because their
// requirements are many, and are not those of the programs that are run. No package imports them:
// go mod tidy would leave them out.
package tested
