//go:build !linux

package verdict

import "os"

// maxResident is not known on this system.
func maxResident(*os.ProcessState) int64 { return 0 }
