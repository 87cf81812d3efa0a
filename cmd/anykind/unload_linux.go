package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// unload unmaps the resident pages of the executable: code and constants. The start touches every
// package, but serving needs few pages. A page fault maps a page again from the page cache. After
// an error, the pages stay resident.
//
// More pages are resident than the program has touched: the system also maps surrounding pages that
// are contiguous in the page cache.
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

// unchanged reports whether the file has all of the mapping. A loader may have written to pages
// that are read-only now, and a debugger to code.
func (m mapping) unchanged() bool { return !m.writable && m.anonymous == 0 }

// mappings returns the mappings of a file in smaps.
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
