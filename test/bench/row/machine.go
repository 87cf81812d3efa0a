package row

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// available returns the available memory of the machine, if the system reports it.
func available() (int64, error) { return meminfo("MemAvailable:") }

// Installed returns the memory of the machine.
func Installed() (int64, error) { return meminfo("MemTotal:") }

func meminfo(key string) (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == key {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no %s", key)
}
