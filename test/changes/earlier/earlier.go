// Package earlier names the modules whose definitions are compared with those of later releases, which
// test/operators/published names. It has no code: go.mod and go.sum say what is downloaded, and which
// bytes it must be.
package earlier
