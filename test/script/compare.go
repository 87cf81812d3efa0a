package script

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// A Command is a command of a script. With neg, it has to fail.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

func (o Options) cmpout(dir string) Command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		usage(ts, neg, len(args) == 1, "cmpout FILE")
		o.compare(ts, dir, "stdout", args[0])
	}
}

func (o Options) cmperr(dir string) Command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		usage(ts, neg, len(args) == 1, "cmperr FILE")
		o.compare(ts, dir, "stderr", args[0])
	}
}

// compare fails the script if an output differs from a file.
func (o Options) compare(ts *testscript.TestScript, dir, stream, file string) {
	got, want := ts.ReadFile(stream), ts.ReadFile(file)
	if Normal(got) == Normal(want) {
		return
	}
	if !o.Update {
		ts.Fatalf("%s is not as in %s:\n%s", stream, file,
			diff.Diff(file, []byte(Normal(want)), stream, []byte(Normal(got))))
	}
	path := filepath.Join(dir, ts.Name()+".txtar")
	ts.Check(replaceFile(path, file, got))
	ts.Logf("%s: %s now is what was printed", path, file)
}

// replaceFile replaces the content of one file of an archive.
func replaceFile(archive, name, content string) error {
	a, err := txtar.ParseFile(archive)
	if err != nil {
		return err
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(content)
			return os.WriteFile(archive, txtar.Format(a), 0o644)
		}
	}
	return fmt.Errorf("%s has no file %s to update", archive, name)
}
