package script

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	"github.com/anykind/anykind/test/program"

	"github.com/rogpeppe/go-internal/testscript"
)

type backgroundKey struct{}

// background is the one command a script may have in the background.
type background struct {
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
	err    error // of the command, once ended is closed
}

// output is the output of a command so far.
type output struct {
	mu      sync.Mutex
	data    bytes.Buffer
	changed chan struct{} // closed when there is more; nil without a waiting reader
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data.Write(p)
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
	return len(p), nil
}

// read returns the output and a channel that is closed when there is more.
func (o *output) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.data.String(), o.changed
}

func running(ts *testscript.TestScript) *background {
	b := ts.Value(backgroundKey{}).(*background)
	if b.cmd == nil {
		ts.Fatalf("nothing runs in the background: start comes first")
	}
	return b
}

func (o Options) start(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 1 && (args[0] == "kubectl" || args[0] == "anykind"), "start kubectl|anykind ARG...")
	path := o.Kubectl
	if args[0] == "anykind" {
		var err error
		path, err = program.Anykind()
		ts.Check(err)
	}
	b := ts.Value(backgroundKey{}).(*background)
	if b.cmd != nil {
		ts.Fatalf("a command runs in the background already: finish or interrupt it")
	}
	*b = background{ended: make(chan struct{})}
	b.cmd = exec.CommandContext(o.ctx, path, args[1:]...)
	b.cmd.Dir = ts.MkAbs(".")
	b.cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "KUBECONFIG="+ts.Getenv("KUBECONFIG"))
	b.cmd.Stdout, b.cmd.Stderr = &b.stdout, &b.stderr
	ts.Check(b.cmd.Start())
	go func() {
		b.err = b.cmd.Wait()
		close(b.ended)
	}()
	cmd, ended := b.cmd, b.ended
	ts.Defer(func() { // a failed script leaves no process running
		cmd.Process.Kill()
		<-ended
	})
}

func expect(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1 || len(args) == 2, "expect REGEXP [NAME]")
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	if len(args) == 2 && pattern.NumSubexp() != 1 {
		ts.Fatalf("%#q has no one group to name %s", args[0], args[1])
	}
	b := running(ts)
	found := func(text string) bool {
		m := pattern.FindStringSubmatch(text)
		if m != nil && len(args) == 2 {
			ts.Setenv(args[1], m[1])
		}
		return m != nil
	}
	for {
		text, more := b.stdout.read()
		if found(text) {
			return
		}
		select {
		case <-more:
		case <-b.ended:
			if text, _ := b.stdout.read(); found(text) {
				return
			}
			b.print(ts)
			ts.Fatalf("the background command ended without printing %#q: %v", args[0], b.err)
		}
	}
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 0, "finish")
	b := running(ts)
	<-b.ended
	b.print(ts)
	if b.err != nil {
		ts.Fatalf("the background command failed: %v", b.err)
	}
	b.cmd = nil
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 0, "interrupt")
	b := running(ts)
	ts.Check(b.cmd.Process.Signal(os.Interrupt))
	<-b.ended
	b.print(ts)
	b.cmd = nil
}

// print makes the output of the command the script's stdout and stderr.
func (b *background) print(ts *testscript.TestScript) {
	stdout, _ := b.stdout.read()
	stderr, _ := b.stderr.read()
	_, err := strings.NewReader(stdout).WriteTo(ts.Stdout())
	ts.Check(err)
	_, err = strings.NewReader(stderr).WriteTo(ts.Stderr())
	ts.Check(err)
}
