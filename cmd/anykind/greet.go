package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/server"
)

// greet says what somebody needs to know to use the server.
func greet(out io.Writer, a *app.App, kubeconfig string, took time.Duration) {
	if absolute, err := filepath.Abs(kubeconfig); err == nil {
		kubeconfig = absolute
	}
	v := server.BuildVersion()
	fmt.Fprintf(out, "anykind %s, Kubernetes %s.%s, listens on %s\n", v.Anykind, v.Major, v.Minor, a.URL())
	fmt.Fprintf(out, "to use it: export KUBECONFIG=%s\n", quoteShell(kubeconfig))
	fmt.Fprintf(out, "started in %d ms\n", took.Milliseconds())
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// quoteShell writes a word so that a shell reads it as it is.
func quoteShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
