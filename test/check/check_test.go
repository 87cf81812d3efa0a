// Package check has the ways to run anykind check, as scripts: by hand, in git, behind other programs,
// and in a workflow.
//
// Each script is one way. Run one with go test -run TestCheck/NAME. The package sees commands and their
// output; internal/offline/check has the tests of verdicts.
package check

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/script"
)

var options = script.Flags(flag.CommandLine)

// Besides the commands of package script, a script has
//
//	install NAME...
//	    Puts anykind, or the published kubectl, into the folder bin, the first one in PATH.
func TestCheck(t *testing.T) {
	o := *options
	o.Commands = map[string]script.Command{"install": install}
	script.Run(t, ".", o)
}

func install(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		find, ok := map[string]func() (string, error){"anykind": program.Anykind, "kubectl": program.Kubectl}[name]
		if !ok {
			ts.Fatalf("install knows anykind and kubectl, not %s", name)
		}
		script.Install(ts, name, find)
	}
}

// session matches an example of the page: a command and its output.
var session = regexp.MustCompile("(?s)```console\n\\$ (?:helm template shop \\| )?(anykind (?:check|catalog)[^\n]*)\n(.*?)```")

// Each example of docs/check.md is in a script: the command, then a comparison of its output with the
// output on the page.
func TestPage(t *testing.T) {
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(top, "docs", "check.md"))
	if err != nil {
		t.Fatal(err)
	}
	outputs := compared(t)
	examples := session.FindAllStringSubmatch(string(page), -1)
	if len(examples) == 0 {
		t.Error("the page has no examples")
	}
	for _, m := range examples {
		want, ok := outputs[m[1]]
		switch {
		case !ok:
			t.Errorf("no script runs %q and compares its output", m[1])
		case strings.TrimSpace(want) != strings.TrimSpace(m[2]):
			t.Errorf("%s: the page has\n%s\nand the script has\n%s", m[1], m[2], want)
		}
	}
}

// compared returns the expected outputs of the commands that a script compares.
func compared(t *testing.T) map[string]string {
	t.Helper()
	scripts, err := filepath.Glob("*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	for _, name := range scripts {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		command := ""
		for line := range strings.Lines(string(archive.Comment)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "! ")
			if file, ok := strings.CutPrefix(line, "cmpout "); ok {
				outputs[command] = files[file]
			}
			command = line
		}
	}
	return outputs
}
