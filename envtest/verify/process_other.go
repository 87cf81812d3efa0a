//go:build !unix

package verify

import (
	"os"
	"os/exec"
)

// Signals to a process. Only kill has an effect: a Pause then holds the requests and events of a program that runs.
const (
	kill = iota
	stop
	goOn
)

func ownGroup(*exec.Cmd) {}

func signalGroup(p *os.Process, s int) error {
	if s == kill {
		return p.Kill()
	}
	return nil
}
