// Package further lists the Go modules of more published operators with their suites, and of Helm and act. They are
// separate from those of tested because they require newer versions of common modules. No package
// imports them: go mod tidy would remove them.
package further
