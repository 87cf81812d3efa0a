//go:build !linux

package verdict

// measure measures nothing: there is no portable way.
func measure(int) func() int64 { return func() int64 { return 0 } }
