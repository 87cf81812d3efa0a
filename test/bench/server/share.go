package server

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// A held process is suspended while it is ahead of its CPU share.
type held struct {
	let  chan struct{}
	over chan error
}

// turn is the interval of the checks. The system accounts CPU time in units of that length.
const turn = tick

// hold limits a process to a share of one core from now on. Excess use delays the process. Unused time
// does not accumulate.
func hold(p *os.Process, share float64) *held {
	h := &held{make(chan struct{}), make(chan error, 1)}
	go func() {
		err := h.run(p, share)
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		h.over <- err
	}()
	return h
}

func (h *held) run(p *os.Process, share float64) error {
	ticker := time.NewTicker(turn)
	defer ticker.Stop()
	allowed, err := processor(p.Pid)
	for last, stopped := time.Now(), false; err == nil; {
		select {
		case <-h.let:
			return p.Signal(syscall.SIGCONT)
		case <-ticker.C:
		}
		used, gone := processor(p.Pid)
		if gone != nil {
			return nil // the process has ended
		}
		now := time.Now()
		allowed = min(allowed+time.Duration(share*float64(now.Sub(last))), used+turn)
		last = now
		switch ahead := used > allowed; {
		case ahead && !stopped:
			err = p.Signal(syscall.SIGSTOP)
			stopped = true
		case !ahead && stopped:
			err = p.Signal(syscall.SIGCONT)
			stopped = false
		}
	}
	return err
}

// release removes the limit.
func (h *held) release() error {
	close(h.let)
	return <-h.over
}
