package script

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// Install puts a program under a name into the folder bin of a script, the first one in PATH. It replaces a program with
// that name.
func Install(ts *testscript.TestScript, name string, find func() (string, error)) {
	path, err := find()
	ts.Check(err)
	bin := ts.MkAbs("bin")
	ts.Check(os.MkdirAll(bin, 0o755))
	link := filepath.Join(bin, name)
	if err := os.Remove(link); !errors.Is(err, fs.ErrNotExist) {
		ts.Check(err)
	}
	ts.Check(os.Symlink(path, link))
	ts.Setenv("PATH", bin+string(filepath.ListSeparator)+ts.Getenv("PATH"))
}
