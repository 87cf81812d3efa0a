// Package earlier lists the modules of the earlier definitions; test/operators/published has the later
// releases. It has no code: go.mod and go.sum pin the modules and their contents.
package earlier
