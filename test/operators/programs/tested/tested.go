// Package tested lists the Go modules of published operators with their suites.
//
// Their tests are built with one version of each module. The requirements are many, and differ from those of the
// programs, so they have a module of their own. No package imports most of them, so go mod tidy would remove them.
package tested
