// Package script runs scripts in which a user works with kubectl.
//
// A script is a txtar archive: a list of commands, then their files. It starts on a fresh server in
// this process, with only the objects of a first start, and with a home folder of its own, so that
// kubectl has no cache. No command of a script waits or retries: each command sees the effect of the
// previous one.
//
// Besides the commands of testscript (cmp, exec, stdout, stderr and so on) a script has:
//
//	[!] kubectl ARG...
//	    Runs kubectl. With a ! it must fail.
//	[!] anykind ARG...
//	    Runs anykind. Its data directory is that of the server, if the server has one.
//	cmpout FILE
//	cmperr FILE
//	    Compares the output of the last command with FILE. Ages, uids, timestamps, resource
//	    versions and the server's address may differ.
//	request METHOD PATH [FILE]
//	    Sends a request with kubectl's credentials, with FILE as its body. Prints the
//	    status and, indented, the body. Any response is a success.
//	curl URL [HEADER...]
//	    Gets a URL as curl does, without credentials, and prints the body. Any
//	    response is a success.
//	start kubectl ARG...
//	start anykind ARG...
//	    Runs kubectl, or anykind, in the background.
//	expect REGEXP [NAME]
//	    Waits until the output of the background command matches, and fails if the
//	    command ends without a match. The one group of the expression becomes the
//	    environment variable NAME.
//	finish
//	    Waits until the background command ends by itself, without an error.
//	interrupt
//	    Interrupts the background command and waits for its end.
//	    After both, stdout and stderr have its output.
//	capture NAME
//	    Sets the environment variable NAME to the output of the last command.
//	fill FILE...
//	    Replaces ${NAME} by the values of environment variables.
//	issuer start
//	    Starts an OpenID Connect issuer. ISSUER is its URL, and ISSUER_CA the certificate
//	    of its CA, as a string in JSON.
//	issuer token FILE
//	    Prints a token with the claims in FILE, JSON, that is valid for an hour. It waits
//	    until a server has fetched the keys, so that the token is accepted.
//	kms start
//	    Starts a KMS plugin with keys of its own. KMS is its endpoint.
//	kms rotate
//	    It encrypts with a new key.
//	kms stop
//	kms resume
//	    Stops it as if it were killed, and starts it again.
//	webhook start [NAME...]
//	    Starts the conversion webhook of test/hostport, with a certificate for the
//	    names. WEBHOOK is its address as a URL, WEBHOOK_PORT its port and CA_BUNDLE
//	    its certificate as a definition has it.
//	webhook fail MESSAGE
//	webhook change FILE
//	webhook convert
//	    From now on it responds with an error, or changes each converted object by
//	    the merge patch in FILE, or converts normally.
//	webhook admit FILE
//	    From now on FILE is its response to an AdmissionReview, in which a patch is
//	    a list.
//	webhook review
//	    Prints the number of requests, the last request and the last response.
//	webhook stop
//	    Stops it.
//
// The environment variable TOP is the top folder of the repository.
package script

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/program"

	"github.com/rogpeppe/go-internal/testscript"
)

// Options are the options of a run.
type Options struct {
	// Update updates the scripts with the actual output.
	Update bool
	// Kubeconfig names an existing server, which replaces the fresh server of each script. The objects
	// of scripts stay there.
	Kubeconfig string
	// Kubectl is the path of kubectl, in place of the published one.
	Kubectl string
	// Keep stores the data of the server in the folder anykind-data of the script, with the
	// administrator's kubeconfig, as anykind serve does. By default, data are in memory.
	Keep bool
	// Commands are additional commands for the scripts.
	Commands map[string]Command
	// Conditions are additional conditions for the scripts, as [NAME] before a command.
	Conditions map[string]bool
	// Serve, if set, starts the server of a script with its data in a folder, in place of one in this
	// process, and returns the administrator's kubeconfig.
	Serve func(env *testscript.Env, dir string) ([]byte, error)

	ctx context.Context // stops background commands before the end of the test run
}

// Flags returns options that are set by the flags of a test.
func Flags(f *flag.FlagSet) *Options {
	o := &Options{}
	f.BoolVar(&o.Update, "update", false, "write what was printed into the scripts, where it differs")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "run against the server of this `file`; take -parallel 1 as well, the scripts share it then")
	f.StringVar(&o.Kubectl, "kubectl", "", "run this `program` as kubectl, in place of the published one")
	return o
}

// grace is the time before the end of a test run that is left to report a hanging command.
const grace = 5 * time.Second

// Run runs the scripts of a folder, each as a subtest.
func Run(t *testing.T, dir string, o Options) {
	t.Helper()
	o.ctx = t.Context()
	if deadline, ok := t.Deadline(); ok {
		ctx, cancel := context.WithDeadline(o.ctx, deadline.Add(-grace))
		t.Cleanup(cancel)
		o.ctx = ctx
	}
	if o.Kubectl == "" {
		program, err := program.Kubectl()
		if err != nil {
			t.Fatal(err)
		}
		o.Kubectl = program
	}
	commands := map[string]Command{
		"kubectl":   o.kubectl,
		"anykind":   anykindCommand,
		"cmpout":    o.cmpout(dir),
		"cmperr":    o.cmperr(dir),
		"request":   request,
		"curl":      curl,
		"start":     o.start,
		"expect":    expect,
		"finish":    finish,
		"interrupt": interrupt,
		"capture":   capture,
		"fill":      fill,
		"webhook":   webhookCommand,
		"issuer":    issuerCommand,
		"kms":       kmsCommand,
	}
	maps.Copy(commands, o.Commands)
	testscript.Run(t, testscript.Params{Dir: dir, Setup: o.setup, RequireUniqueNames: true, Cmds: commands, Condition: o.condition})
}

func (o Options) condition(name string) (bool, error) {
	holds, known := o.Conditions[name]
	if !known {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	return holds, nil
}

// setup gives a script its server, its home and its kubeconfig.
func (o Options) setup(env *testscript.Env) error {
	top, err := program.Top()
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	config := filepath.Join(home, "kubeconfig")
	data, err := o.server(env)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, data, 0o600); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("KUBECONFIG", config)
	env.Setenv("KUBERC", "off")
	env.Setenv("TOP", top)
	// Commands are short: without garbage collection, kubectl takes a fifth less CPU time.
	env.Setenv("GOGC", "off")
	env.Setenv("GOMEMLIMIT", "512MiB")
	env.Values[backgroundKey{}] = &background{}
	env.Values[webhookKey{}] = &webhook{}
	env.Values[issuerKey{}] = &issuer{}
	env.Values[kmsKey{}] = &plugin{}
	return nil
}

// kubectl is the command kubectl.
func (o Options) kubectl(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, "kubectl", o.Kubectl, args)
}

// anykindCommand is the command anykind.
func anykindCommand(ts *testscript.TestScript, neg bool, args []string) {
	path, err := program.Anykind()
	ts.Check(err)
	run(ts, neg, "anykind", path, args)
}

func run(ts *testscript.TestScript, neg bool, name, path string, args []string) {
	err := ts.Exec(path, args...)
	switch {
	case err != nil && !neg:
		ts.Fatalf("%s failed: %v", name, err)
	case err == nil && neg:
		ts.Fatalf("%s succeeded, the script says it must not", name)
	}
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "capture NAME")
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// usage fails a script for a wrong use of a command.
func usage(ts *testscript.TestScript, neg, ok bool, text string) {
	if neg {
		ts.Fatalf("! makes no sense before %q", text)
	}
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}
