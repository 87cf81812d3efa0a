package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/anykind/anykind/internal/offline/plugin"
)

func tell(out io.Writer, actions []plugin.Action) {
	for _, a := range actions {
		switch a.What {
		case plugin.Left:
			fmt.Fprintf(out, "%s stays: it is no link of plugin install to this program\n", a.Path)
		default:
			fmt.Fprintln(out, a.Path, a.What)
		}
	}
}

// warn reports whether kubectl finds the installed plugins, and prints the reason if not.
func warn(out io.Writer, f plugin.Folder) bool {
	if !f.InPath() {
		add := ""
		if runtime.GOOS != "windows" {
			add = ": export PATH=" + quoteShell(f.Dir) + ":$PATH"
		}
		fmt.Fprintf(out, "warning: kubectl does not find the plugins, because %s is not in PATH; add it%s\n", f.Dir, add)
		return false
	}
	before := f.Overshadowed()
	for _, name := range f.Names {
		if first, ok := before[name]; ok {
			fmt.Fprintf(out, "warning: %s is overshadowed by %s, which comes earlier in PATH\n", filepath.Join(f.Dir, name), first)
		}
	}
	return len(before) == 0
}

// ownFolder is a folder of PATH below the home of the user.
func ownFolder(path []string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "bin in your home directory"
	}
	for _, dir := range path {
		if strings.HasPrefix(dir, home+string(filepath.Separator)) {
			return dir
		}
	}
	return filepath.Join(home, ".local", "bin")
}
