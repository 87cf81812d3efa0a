package server

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A Usage is what the processes of a server take together, as the system says.
type Usage struct {
	Resident int64 // bytes in memory now
	Peak     int64 // ... at most, since ResetPeak or the start
	CPU      time.Duration
	Each     []Part
}

// A Part is what one process takes.
type Part struct {
	Name     string
	Resident int64
	CPU      time.Duration
}

// Of is what some of the processes take.
func (u Usage) Of(some func(name string) bool) (sum Part) {
	for _, p := range u.Each {
		if some(p.Name) {
			sum.Resident += p.Resident
			sum.CPU += p.CPU
		}
	}
	return sum
}

// Usage asks the system. Where it does not say (it needs Linux's /proc), it is an
// error.
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

// ResetPeak has Peak begin anew.
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

// tick is the unit of times in /proc, the same on all architectures of Linux.
const tick = 10 * time.Millisecond

func processor(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the process is in parentheses and may have any character.
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
