package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/server/console"
)

// greet prints how to use the server.
func greet(out io.Writer, called string, a *app.App, o app.Options, took time.Duration) {
	v := server.BuildVersion()
	fmt.Fprintf(out, "anykind %s, Kubernetes %s.%s, listens on %s\n", v.Anykind, v.Major, v.Minor, a.URL())
	fmt.Fprintf(out, "to use it: export KUBECONFIG=%s\n", quoteShell(absolute(o.Kubeconfig)))
	fmt.Fprintf(out, "to add a user: %s\n", userWords(called, o))
	if o.Console {
		fmt.Fprintf(out, "console: %s%s\n", a.URL(), console.Root)
	}
	fmt.Fprintf(out, "started in %d ms\n", took.Milliseconds())
}

// userWords returns the command that adds a user of the server. called is the name of the program.
func userWords(called string, o app.Options) string {
	words := called + " user NAME"
	if o.Dir != flags.DefaultDataDir {
		words += " --data-dir " + quoteShell(absolute(o.Dir))
	}
	if o.Kubeconfig != flags.AdministratorFile(o.Dir) {
		words += " --admin-kubeconfig " + quoteShell(absolute(o.Kubeconfig))
	}
	return words
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// quoteShell quotes a word for a shell.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
