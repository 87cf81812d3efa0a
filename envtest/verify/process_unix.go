//go:build unix

package verify

import (
	"os"
	"os/exec"
	"syscall"
)

// Signals to a process and its children.
const (
	kill = syscall.SIGKILL
	stop = syscall.SIGSTOP
	goOn = syscall.SIGCONT
)

// ownGroup makes a command start in a process group of its own, to which its children belong.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to a process and its children.
func signalGroup(p *os.Process, s syscall.Signal) error { return syscall.Kill(-p.Pid, s) }
