package session

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var update = flag.Bool("update", false, "update docs/session.svg")

// The commands of the picture, each below a line about its purpose. They run in the top folder of the
// repository.
var commands = []string{
	"# a new kind, served when the command returns",
	"kubectl apply -f docs/examples/crontabs.yaml",
	"kubectl apply -f docs/examples/nightly.yaml",
	"kubectl get ct",
	"",
	"# its schema is enforced and published",
	`kubectl patch ct nightly --type=merge -p '{"spec":{"image":7}}'`,
	"kubectl explain ct.spec.image",
}

// The session in docs/session.svg is the actual output of the program and kubectl.
func TestSession(t *testing.T) {
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := program.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	server, err := process.Start(t.Context(), anykind, t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)

	lines := []string{
		"$ go run ./cmd/anykind serve &",
		"anykind (devel), Kubernetes " + kubernetes.Name + ", listens on https://127.0.0.1:6443",
		"$ export KUBECONFIG=$PWD/anykind-data/admin.kubeconfig",
		"",
	}
	for _, command := range commands {
		said, isCommand := strings.CutPrefix(command, "kubectl ")
		if !isCommand {
			lines = append(lines, command)
			continue
		}
		lines = append(lines, "$ "+command)
		lines = append(lines, wrap(run(t, top, kubectl, said, server.Kubeconfig))...)
	}
	compare(t, filepath.Join(top, "docs", "session.svg"), SVG(lines))
}

// run returns the output of kubectl, errors included; every age is 0s. A shell splits the arguments,
// as for a user who types the commands of the picture.
func run(t *testing.T, dir, kubectl, args, kubeconfig string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", `"$0" `+args, kubectl)
	c.Dir = dir
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	out, _ := c.CombinedOutput() // the picture shows errors, too
	return strings.ReplaceAll(age.ReplaceAllString(string(out), "${1}0s"), "\t", "  ")
}

// age matches the age of an object at the end of a row.
var age = regexp.MustCompile(`(?m)(  )(\d+m)?\d+s$`)

// columns is the maximal length of a line of the picture.
const columns = 98

// wrap splits text into lines that fit the picture.
func wrap(text string) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, " \n"), "\n") {
		for len(line) > columns {
			at := strings.LastIndexByte(line[:columns], ' ')
			if at < 1 {
				break
			}
			lines, line = append(lines, line[:at]), "  "+line[at+1:]
		}
		lines = append(lines, line)
	}
	return lines
}

func compare(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s shows another session: go test ./session -update\n%s", file, want)
	}
}
