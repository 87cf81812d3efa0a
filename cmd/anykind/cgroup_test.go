package main

import (
	"math"
	"strconv"
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const self, v2, v1 = "proc/self/cgroup", "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups":        {nil, math.MaxInt64},
		"no limit":                 {map[string]string{self: "0::/\n", v2 + "memory.max": "max\n"}, math.MaxInt64},
		"a container":              {map[string]string{self: "0::/\n", v2 + "memory.max": "268435456\n"}, 256 << 20},
		"a service":                {map[string]string{self: "0::/system.slice/anykind.service\n", v2 + "system.slice/anykind.service/memory.max": "1073741824\n"}, 1 << 30},
		"a slice with a limit":     {map[string]string{self: "0::/a/b\n", v2 + "a/memory.max": "100\n", v2 + "a/b/memory.max": "200\n"}, 100},
		"another service":          {map[string]string{self: "0::/a\n", v2 + "b/memory.max": "100\n"}, math.MaxInt64},
		"outside of the namespace": {map[string]string{self: "0::/../../a\n", v2 + "memory.max": "300\n"}, 300},
		"version 1":                {map[string]string{self: "5:cpu,cpuacct:/x\n4:memory:/docker/1\n", v1 + "memory.limit_in_bytes": "9223372036854771712\n", v1 + "docker/1/memory.limit_in_bytes": "400\n"}, 400},
		"version 1, the container": {map[string]string{self: "4:memory:/docker/1\n", v1 + "memory.limit_in_bytes": "500\n"}, 500},
		"both":                     {map[string]string{self: "1:name=systemd:/x\n0::/x\n", v2 + "x/memory.max": "600\n"}, 600},
		"garbage":                  {map[string]string{self: "0::/\nnonsense\n", v2 + "memory.max": "-1\n"}, math.MaxInt64},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memoryLimit(root); got != c.want {
			t.Errorf("%s: %s, want %s", name, strconv.FormatInt(got, 10), strconv.FormatInt(c.want, 10))
		}
	}
}
