package migrate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/hostport"
	"github.com/anykind/anykind/test/program"
)

const (
	crontabs       = "/apis/example.com/%s/namespaces/default/crontabs"
	crontabsObject = definitions + "/crontabs.example.com"
)

// crontabVersions returns the versions of a CronTab, with hostPort in one, and host and port in the
// other.
func crontabVersions(storage string) []object {
	text := object{"type": "string"}
	version := func(name string, fields object) object {
		return object{"name": name, "served": true, "storage": name == storage, "schema": object{
			"openAPIV3Schema": object{"type": "object", "properties": fields},
		}}
	}
	return []object{version("v1beta1", object{"hostPort": text}), version("v1", object{"host": text, "port": text})}
}

// convertible creates n CronTabs that are stored in v1beta1. Their storage version is then v1, and a
// webhook converts them.
func (w *world) convertible(n int) *hostport.Server {
	w.Helper()
	hook, err := hostport.Start()
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(hook.Close)
	api := w.api()
	w.do(api, http.MethodPost, definitions, object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "crontabs.example.com"},
		"spec": object{
			"group": "example.com", "scope": "Namespaced", "names": object{"plural": "crontabs", "kind": "CronTab", "shortNames": []string{"ct"}},
			"versions": crontabVersions("v1beta1"),
			"conversion": object{"strategy": "Webhook", "webhook": object{
				"conversionReviewVersions": []string{"v1"},
				"clientConfig":             object{"url": "https://" + hook.Address() + "/convert", "caBundle": hook.CABundle},
			}},
		},
	}, nil)
	for i := range n {
		w.do(api, http.MethodPost, fmt.Sprintf(crontabs, "v1beta1"), object{
			"apiVersion": "example.com/v1beta1", "kind": "CronTab", "metadata": object{"name": fmt.Sprint("c", i)},
			"hostPort": fmt.Sprintf("h%d:80", i),
		}, nil)
	}
	w.do(api, http.MethodPatch, crontabsObject, object{"spec": object{"versions": crontabVersions("v1")}}, nil)
	return hook
}

// A command is a running anykind migrate.
type command struct {
	w      *world
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	stderr bytes.Buffer
	said   []string
}

func (w *world) command(args ...string) *command {
	w.Helper()
	c := &command{w: w, cmd: exec.CommandContext(w.Context(), w.program, append([]string{"migrate", "--kubeconfig", w.server.Kubeconfig}, args...)...)}
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	c.stdout = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return c
}

// until reads lines until one contains a text.
func (c *command) until(text string) {
	c.w.Helper()
	for c.stdout.Scan() {
		c.said = append(c.said, c.stdout.Text())
		if strings.Contains(c.stdout.Text(), text) {
			return
		}
	}
	c.w.Fatalf("it did not say %q; it said\n%s\n%s", text, strings.Join(c.said, "\n"), &c.stderr)
}

// end waits for the end, and compares the last line, the exit code, and the errors.
func (c *command) end(line string, code int, errs string) {
	c.w.Helper()
	for c.stdout.Scan() {
		c.said = append(c.said, c.stdout.Text())
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		c.w.Fatal(err)
	}
	last := ""
	if len(c.said) > 0 {
		last = c.said[len(c.said)-1]
	}
	if last != line || got != code || (errs == "") != (c.stderr.Len() == 0) || !strings.Contains(c.stderr.String(), errs) {
		c.w.Errorf("%v: it exited with %d and said\n%s\n%s\nwant %d, %q and %q", c.cmd.Args[1:], got, strings.Join(c.said, "\n"), &c.stderr, code, line, errs)
	}
}

// The command shows the progress of the server and the reason of a wait, and continues after a crash
// and restart of the server.
func TestCommand(t *testing.T) {
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, program: program, dir: t.TempDir()}
	w.start()
	const n = 20
	hook := w.convertible(n)
	hook.Fail("not now")

	c := w.command("ct")
	c.until("it waits: Internal error occurred: conversion webhook for example.com/v1beta1, Kind=CronTab failed: not now")
	w.server.Kill()
	c.until("it waits: the server does not answer: ")
	w.start()
	// Another one finds the running migration, and may be interrupted.
	other := w.command("--all")
	other.until("it waits: Internal error occurred: conversion webhook")
	if err := other.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	other.end(other.said[len(other.said)-1], 1, "; the migration continues in the server")
	w.command("ct", "--timeout", "1ms").end("", 1, "not done after 1ms; the migration continues in the server")
	var list struct{ Items []object }
	w.do(w.api(), http.MethodGet, migrations, nil, &list)
	if len(list.Items) != 1 {
		t.Errorf("there are %d migrations", len(list.Items))
	}
	hook.Convert()
	c.end(fmt.Sprintf("crontabs.example.com: all %d objects are stored in v1", n), 0, "")

	w.do(w.api(), http.MethodGet, migrations, nil, &list)
	if len(list.Items) != 0 {
		t.Errorf("%d migrations are left", len(list.Items))
	}
	var crd struct {
		Status struct{ StoredVersions []string }
	}
	w.do(w.api(), http.MethodGet, crontabsObject, nil, &crd)
	if got := strings.Join(crd.Status.StoredVersions, " "); got != "v1" {
		t.Errorf("stored versions are %s", got)
	}
	w.command("crontab.example.com").end("crontabs.example.com: all objects are stored in v1", 0, "")
	w.command("--all").end("nothing to migrate", 0, "")
	w.command("things").end("", 1, `no CustomResourceDefinition has the kind "things"`)
	w.command().end("", 2, "anykind migrate needs kinds or --all; see anykind migrate --help")
	w.command("ct", "--server", "https://127.0.0.1:1").end("", 1, "connection refused")
	if err := w.server.Stop(); err != nil {
		t.Error(err)
	}
}
