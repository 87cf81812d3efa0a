package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// browse opens a link in the browser of the user, if there is one. The browser gets a file that leads to the link:
// other users of the machine see the arguments of commands. The result removes the file.
func browse(link string) (done func()) {
	file, err := os.CreateTemp("", "anykind-console-*.html") // of mode 0600
	if err != nil {
		return func() {}
	}
	done = func() { _ = os.Remove(file.Name()) }
	_, err = fmt.Fprintf(file, `<!doctype html><meta http-equiv="refresh" content="0; url=%s"><a href="%[1]s">anykind console</a>`, link)
	if errors.Join(err, file.Close()) != nil {
		return done
	}
	name, args := "xdg-open", []string(nil)
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	c := exec.Command(name, append(args, file.Name())...)
	if c.Start() == nil {
		go func() { _ = c.Wait() }()
	}
	return done
}
