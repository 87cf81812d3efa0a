package verify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A program is the running program.
type program struct {
	stop context.CancelFunc
	done chan error

	mu    sync.Mutex
	dead  bool
	conns []interface{ Close() error }
}

// start starts the program.
func (r *run) start() error {
	r.starts++
	reseed(r.world.Seed, r.starts) // the goroutines of a crash draw in any order
	user, err := r.env.AddUser(r.world.user(), &rest.Config{QPS: -1})
	if err != nil {
		return err
	}
	config := user.Config()
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{stop: cancel, done: make(chan error, 1)}
	p.tie(config)
	r.program = p
	go func() { p.done <- r.world.Start(ctx, config) }()
	return nil
}

// kill ends the program as a crash does: nothing that it sends from now on arrives. It gets time to end
// its goroutines.
func (r *run) kill() {
	p := r.program
	p.cut()
	p.stop()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
	}
	synctest.Wait()
}

// restart starts the program after its end.
func (r *run) restart() {
	if err := r.start(); err != nil {
		r.fail(Scene, "starting the program again: %v", err)
	}
	r.tell("program", "starts again")
	r.changed = time.Now()
}

// exited handles the end of a program that nothing killed.
func (r *run) exited(err error) {
	r.program.done <- err // for kill
	r.kill()
	r.tell("program", fmt.Sprintf("exits: %v", err))
	if r.restarts++; r.expect == nil || r.restarts > maxRestarts {
		r.fail(Exits, "Start returned %d times, the last time with: %v", r.restarts, err)
	}
	time.Sleep(10 * time.Second << (r.restarts - 1)) // as a kubelet restarts containers
	r.restart()
}

// tie makes the clients of config use connections that end with the program.
func (p *program) tie(config *rest.Config) {
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.dead {
			_ = c.Close()
			return nil, errors.New("dial: connection refused")
		}
		p.conns = append(p.conns, c)
		return c, nil
	}
}

// cut closes the connections for good.
func (p *program) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
