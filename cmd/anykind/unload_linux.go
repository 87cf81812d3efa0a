package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// unload makes the program itself not resident: its code and its constants, of which the
// start looks at something in every package, and serving at little. What is looked at
// again comes from the system's cache of files. An error leaves it as it was.
//
// What is resident of a program is not only what it looked at: the system maps pages
// around each, as many as its cache of the file happens to have in one piece.
func unload() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, m := range mappings(maps, program) {
		if m.unchanged() {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
		}
	}
}

// A mapping is a part of a file that is mapped into memory.
type mapping struct {
	from, to  uintptr
	writable  bool
	resident  int64 // in kB
	anonymous int64 // of it, what is not as in the file
}

// unchanged reports whether all of a mapping can be read again from its file. A loader
// may have written what is read-only now, and a debugger what is code.
func (m mapping) unchanged() bool { return !m.writable && m.anonymous == 0 }

// mappings reads those of a file from what Linux has in smaps.
func mappings(smaps io.Reader, path string) []mapping {
	var all []mapping
	inside := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		first, _, _ := strings.Cut(line, " ")
		if !strings.HasSuffix(first, ":") { // not the name of a value, but addresses
			var m mapping
			var permissions string
			_, err := fmt.Sscanf(line, "%x-%x %s", &m.from, &m.to, &permissions)
			inside = err == nil && strings.HasSuffix(line, " "+path)
			if inside {
				m.writable = strings.Contains(permissions, "w")
				all = append(all, m)
			}
			continue
		}
		if !inside {
			continue
		}
		last := &all[len(all)-1]
		var n int64
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err == nil {
			last.resident = n
		}
		if _, err := fmt.Sscanf(line, "Anonymous: %d kB", &n); err == nil {
			last.anonymous = n
		}
	}
	return all
}
