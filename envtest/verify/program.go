package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/envtest"
)

// A program is the running program.
type program struct {
	stop    context.CancelFunc
	done    chan error
	suspend func(on bool)
	ended   bool // by kill

	mu    sync.Mutex
	dead  bool
	conns []interface{ Close() error }
}

// start starts the program.
func (r *run) start() error {
	r.starts++
	if r.clock.inMemory() {
		reseed(r.seed, r.starts) // the goroutines of a crash draw in any order
	}
	user, err := r.env.AddUser(r.world.user(), &rest.Config{QPS: -1})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.ctx)
	p := &program{stop: cancel, done: make(chan error, 1), suspend: func(bool) {}}
	run, err := p.life(r.world, user)
	if err != nil {
		cancel()
		return err
	}
	r.program = p
	go func() {
		defer func() {
			if v := recover(); v != nil {
				p.done <- panicked{v}
			}
		}()
		p.done <- run(ctx)
	}()
	r.awaitRequest()
	return nil
}

// awaitRequest waits for the first request of a process. A start can take longer than World.Quiet.
func (r *run) awaitRequest() {
	if r.clock.inMemory() {
		return
	}
	for limit := time.After(slowStart); !r.gate.asked(); {
		select {
		case <-r.gate.arrived:
		case err := <-r.program.done:
			r.program.done <- err // for returned
			return
		case <-limit:
			return
		}
	}
}

// slowStart is the longest time from the start of a process to its first request.
const slowStart = 30 * time.Second

// life returns the function that runs the program until its context ends.
func (p *program) life(w *World, user *envtest.AuthenticatedUser) (run func(context.Context) error, err error) {
	if len(w.Command) == 0 {
		config := user.Config()
		p.tie(config)
		return func(ctx context.Context) error { return w.Start(ctx, config) }, nil
	}
	one := &process{command: w.Command, output: orDefault(w.Output, io.Discard)}
	p.suspend = one.suspend
	one.kubeconfig, err = user.KubeConfig()
	return one.run, err
}

// panicked is a panic in the goroutine of Start, as an error.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprint(p.value) }

// startOthers starts the other programs of the world. No fault affects them.
func (r *run) startOthers() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, start := range r.world.Others {
		user, err := r.env.AddUser(envtest.User{Name: other, Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
		if err != nil {
			cancel()
			return nil, err
		}
		running.Go(func() {
			if err := start(ctx, user.Config()); err != nil && ctx.Err() == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.failed = err
			}
		})
	}
	return func() { cancel(); running.Wait() }, nil
}

// other is the name of the user of World.Others.
const other = "other"

// kill ends the program as a crash does: no later request of it arrives. It gets time to end
// its goroutines.
func (r *run) kill() {
	p := r.program
	if p == nil || p.ended {
		return
	}
	p.ended = true
	p.cut()
	p.stop()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
	}
	r.gate.drop()
	r.clock.wait(r.gate)
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
	if errors.As(err, new(panicked)) {
		r.found(Problem{Panics, err.Error(), err.Error()})
		panic(stopped{})
	}
	if r.restarts++; r.expect == nil || r.restarts > maxRestarts {
		r.fail(Exits, "exit %d of the program: %v", r.restarts, err)
	}
	select { // as a kubelet restarts containers
	case <-time.After(r.times.restart << (r.restarts - 1)):
	case <-r.ctx.Done():
	}
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
