package server

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// A held process is stopped while it is ahead of its share of the processor.
type held struct {
	let  chan struct{}
	over chan error
}

// turn is how often is looked. The system counts the processor in parts as long.
const turn = tick

// hold holds a process to a share of one core from now on. What it took too much it
// has to wait for; what it left unused it cannot use later.
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
			return nil // it has ended
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

// release lets the process take what it can get.
func (h *held) release() error {
	close(h.let)
	return <-h.over
}
