package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The command prints a link, serves it, and gives a browser a file with it and not the link itself.
func TestConsole(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the test is a shell script named xdg-open")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	config, opened := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "opened")
	for name, content := range map[string]string{
		config:                         `{"current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`,
		filepath.Join(dir, "xdg-open"): "#!/bin/sh\necho \"$@\" > " + opened + ".new; cat \"$1\" >> " + opened + ".new; mv " + opened + ".new " + opened + "\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, out := io.Pipe()
	c := consoleCommand()
	c.SetArgs([]string{"--kubeconfig", config})
	c.SetOut(out)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	link, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	link = strings.TrimSpace(link)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(link, "http://127.0.0.1:") {
		t.Errorf("%s is answered with %d", link, answer.StatusCode)
	}
	var got []byte
	for got == nil && ctx.Err() == nil {
		got, _ = os.ReadFile(opened) // the script has not ended yet
		runtime.Gosched()
	}
	arguments, page, _ := strings.Cut(string(got), "\n")
	if strings.Contains(arguments, "secret") || !strings.Contains(page, link) {
		t.Errorf("the browser got %q, with\n%s", arguments, page)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "anykind-console-*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
