package server

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A Usage is the resource usage of a server's processes, as the system reports it.
type Usage struct {
	Resident int64 // bytes in memory now
	Peak     int64 // maximum since ResetPeak or the start
	CPU      time.Duration
	Each     []Part
}

// A Part is the usage of one process.
type Part struct {
	Name     string
	Resident int64
	CPU      time.Duration
}

// Of sums the usage of selected processes.
func (u Usage) Of(some func(name string) bool) (sum Part) {
	for _, p := range u.Each {
		if some(p.Name) {
			sum.Resident += p.Resident
			sum.CPU += p.CPU
		}
	}
	return sum
}

// Usage reads the usage from the system. It fails without Linux's /proc.
func (s *Server) Usage() (Usage, error) {
	var u Usage
	for _, p := range s.processes {
		resident, peak, err := memory(p.Process.Pid)
		if err != nil {
			return u, err
		}
		cpu, err := processor(p.Process.Pid)
		if err != nil {
			return u, err
		}
		u.Resident += resident
		u.Peak += peak
		u.CPU += cpu
		u.Each = append(u.Each, Part{p.name, resident, cpu})
	}
	return u, nil
}

// ResetPeak resets Peak.
func (s *Server) ResetPeak() error {
	for _, p := range s.processes {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Process.Pid), []byte("5"), 0); err != nil {
			return err
		}
	}
	return nil
}

func memory(pid int) (resident, peak int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			continue
		}
		n, _ := strconv.ParseInt(string(fields[1]), 10, 64) // other lines have no numbers
		switch string(fields[0]) {
		case "VmRSS:":
			resident = n << 10
		case "VmHWM:":
			peak = n << 10
		}
	}
	if resident == 0 {
		return 0, 0, fmt.Errorf("process %d has no memory: it has ended", pid)
	}
	return resident, peak, nil
}

// tick is the unit of times in /proc, equal on all architectures of Linux.
const tick = 10 * time.Millisecond

func processor(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The process name is in parentheses and may contain any character.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: cannot read %q", pid, data)
	}
	var sum int64
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
