package main

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// share is the share of the memory limit of a container that the Go runtime may use. The rest is for the program itself,
// the page cache and stacks of the kernel.
const share = 0.9

// bound limits the memory of the runtime by that of the container, so that the collector works harder before the kernel
// kills the process. The variable GOMEMLIMIT has precedence.
func bound() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit < math.MaxInt64 {
		debug.SetMemoryLimit(int64(float64(limit) * share))
	}
}

// memoryLimit returns the smallest memory limit of the control groups of this process, in version 2 or 1 of their
// interface, or math.MaxInt64. A container usually sees its own group as the root.
func memoryLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case strings.Contains(","+controllers+",", ",memory,"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case number != "0" || controllers != "":
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			limit = min(limit, readLimit(root, path.Join(mount, group, file)))
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// readLimit returns the limit of a file. "max" is not a number, and version 1 has a number near 2^63.
func readLimit(root fs.FS, name string) int64 {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return math.MaxInt64
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || limit <= 0 {
		return math.MaxInt64
	}
	return limit
}
