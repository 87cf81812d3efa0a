// Package access tests the recipes of docs/access.md, and RBAC as its users write it.
//
// Each script starts a server of its own and uses it with kubectl, as the document describes. It sees
// the effects for users, and nothing of the authorizers.
package access

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/script"

	"github.com/rogpeppe/go-internal/txtar"
)

var options = script.Flags(flag.CommandLine)

func TestAccess(t *testing.T) {
	o := *options
	o.Keep = true
	script.Run(t, ".", o)
}

// A session is a part of the page with commands and their output.
var (
	session  = regexp.MustCompile("(?s)```console\n(.*?)```")
	manifest = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	named    = regexp.MustCompile(`\(\.\./test/access/([a-z-]+\.txtar)\)`)
	captured = regexp.MustCompile(`^[A-Z]+=\$\((.*)\)$`)
)

// The page and the scripts agree: each recipe names its script, which runs the commands of the recipe
// in their order and compares their output with the page.
func TestPage(t *testing.T) {
	top, err := program.Top()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(top, "docs", "access.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := 0
	for part := range strings.SplitSeq(string(page), "\n## ") {
		title, text, _ := strings.Cut(part, "\n")
		name := named.FindStringSubmatch(text)
		if name == nil {
			if session.MatchString(text) {
				t.Errorf("%s: it has commands and names no script", title)
			}
			continue
		}
		recipes++
		archive, err := txtar.ParseFile(name[1])
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		if err := shows(text, archive); err != nil {
			t.Errorf("%s, %s: %v", title, name[1], err)
		}
	}
	if recipes < 5 {
		t.Errorf("the page has %d recipes", recipes)
	}
}

// shows returns an error for a command or an output of a recipe that its script lacks.
func shows(text string, archive *txtar.Archive) error {
	for _, m := range manifest.FindAllStringSubmatch(text, -1) {
		if !holds(archive, func(file string) bool { return file == m[1] }) {
			return fmt.Errorf("no file is this one:\n%s", m[1])
		}
	}
	rest := strings.Split(strings.ReplaceAll(string(archive.Comment), "'", ""), "\n")
	for _, m := range session.FindAllStringSubmatch(text, -1) {
		for part := range strings.SplitSeq("\n"+m[1], "\n$ ") {
			command, output, _ := strings.Cut(part, "\n")
			if strings.TrimSpace(command) == "" {
				continue
			}
			at := find(rest, command)
			if at < 0 {
				return fmt.Errorf("the script does not do this, or not at this place: %s", command)
			}
			rest = rest[at+1:]
			want := script.Normal(output)
			if strings.TrimSpace(output) != "" && !holds(archive, func(file string) bool { return script.Normal(file) == want }) {
				return fmt.Errorf("this is not what %s prints:\n%s", command, output)
			}
		}
	}
	return nil
}

func holds(archive *txtar.Archive, is func(file string) bool) bool {
	for _, f := range archive.Files {
		if is(string(f.Data)) {
			return true
		}
	}
	return false
}

// find returns the line of a script that has a shell command.
func find(lines []string, command string) int {
	if m := captured.FindStringSubmatch(command); m != nil {
		command = m[1]
	}
	command = strings.ReplaceAll(command, "'", "")
	for i, line := range lines {
		line = regexp.MustCompile(`\$\{([A-Z]+)\}`).ReplaceAllString(line, "$$$1")
		if strings.TrimPrefix(line, "! ") == command {
			return i
		}
	}
	return -1
}
