// Package further names the Go modules of more published operators whose suites are run. They are
// apart from those of tested because they require newer versions of what both are built from. No
// package imports them: go mod tidy would leave them out.
package further
