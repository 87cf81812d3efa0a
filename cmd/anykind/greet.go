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
)

// greet says what somebody needs to know to use the server.
func greet(out io.Writer, called string, a *app.App, o app.Options, took time.Duration) {
	v := server.BuildVersion()
	fmt.Fprintf(out, "anykind %s, Kubernetes %s.%s, listens on %s\n", v.Anykind, v.Major, v.Minor, a.URL())
	fmt.Fprintf(out, "to use it: export KUBECONFIG=%s\n", quoteShell(absolute(o.Kubeconfig)))
	fmt.Fprintf(out, "to be somebody else: %s\n", userWords(called, o))
	fmt.Fprintf(out, "started in %d ms\n", took.Milliseconds())
}

// userWords are the words of the command that makes a user of the server, by the name that the program was
// called by.
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

// quoteShell writes a word so that a shell reads it as it is.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
