package controlplane

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/test/script"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A stage has the programs of a script, besides the server.
type stage struct {
	ctx        context.Context
	components map[string]*component
	kubelets   map[string]func()

	mu       sync.Mutex
	troubles []string // errors of the fake kubelets
}

type stageKey struct{}

// newStage gives a script its stage, and stops the programs at the end of the script.
func newStage(ctx context.Context, env *testscript.Env, logs string) {
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{ctx: ctx, components: map[string]*component{}, kubelets: map[string]func(){}}
	env.Values[stageKey{}] = s
	env.Defer(func() {
		for _, stop := range s.kubelets {
			stop()
		}
		for name, c := range s.components {
			c.kill()
			if err := c.keep(logs, name); err != nil {
				env.T().Log(err)
			}
		}
		cancel()
	})
}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

// waitTimeout limits the time until a program is healthy.
const waitTimeout = 2 * time.Minute

// commands are the commands of a script besides those of package script:
//
//	run NAME PROGRAM ARG...
//	\tRuns kube-scheduler or kube-controller-manager as NAME at a port of its own, and
//	\twaits until it is healthy.
//	end NAME
//	\tStops it gracefully.
//	crash NAME
//	\tKills it.
//	[!] errors NAME
//	\tWith a !, its log has no errors except those of known.txt. Without, it has some.
//	kubelet start NODE...
//	\tStarts a fake kubelet for each of these nodes.
//	kubelet stop NODE...
//	\tStops it: the node no longer renews its Lease.
func commands() map[string]script.Command {
	return map[string]script.Command{
		"run": runCommand, "end": endCommand, "crash": crashCommand, "errors": errorsCommand, "kubelet": kubeletCommand,
	}
}

func runCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: run NAME PROGRAM ARG...")
	}
	s := stageOf(ts)
	if _, found := s.components[args[0]]; found {
		ts.Fatalf("there is a %s already", args[0])
	}
	c, err := run(s.ctx, args[1], ts.MkAbs("."), args[2:]...)
	ts.Check(err)
	s.components[args[0]] = c
	ctx, cancel := context.WithTimeout(s.ctx, waitTimeout)
	defer cancel()
	ts.Check(c.healthy(ctx))
}

func named(ts *testscript.TestScript, neg bool, args []string, usage string) *component {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: %s NAME", usage)
	}
	c, found := stageOf(ts).components[args[0]]
	if !found {
		ts.Fatalf("nothing that runs is called %s", args[0])
	}
	return c
}

func endCommand(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(named(ts, neg, args, "end").stop())
}

func crashCommand(ts *testscript.TestScript, neg bool, args []string) {
	named(ts, neg, args, "crash").kill()
}

func errorsCommand(ts *testscript.TestScript, neg bool, args []string) {
	c := named(ts, false, args, "[!] errors")
	lines, err := c.log.errors(c.program)
	ts.Check(err)
	s := stageOf(ts)
	s.mu.Lock()
	lines = append(lines, s.troubles...)
	s.mu.Unlock()
	switch {
	case neg && len(lines) > 0:
		ts.Fatalf("%s has logged errors:\n%s", args[0], strings.Join(lines, "\n"))
	case !neg && len(lines) == 0:
		ts.Fatalf("%s has logged no error", args[0])
	}
}

func kubeletCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[0] != "start" && args[0] != "stop" {
		ts.Fatalf("usage: kubelet start|stop NODE...")
	}
	s := stageOf(ts)
	for _, node := range args[1:] {
		stop, runs := s.kubelets[node]
		if runs {
			stop()
			delete(s.kubelets, node)
		}
		if args[0] == "stop" {
			continue
		}
		client, err := clientOf(ts.Getenv("KUBECONFIG"))
		ts.Check(err)
		s.kubelets[node] = startKubelet(s.ctx, client, node, s.fail)
	}
}

// fail records an error of a fake kubelet.
func (s *stage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, err.Error())
}

// clientOf returns a client for a kubeconfig file, without a rate limit.
func clientOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}
