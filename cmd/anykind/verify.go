package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

const (
	// verifyName is the program that injects faults. The server does without its test kit.
	verifyName = "anykind-verify"
	// buildVerify builds it in a clone of the repository.
	buildVerify = "go build -C envtest -o FOLDER ./" + verifyName
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FLAGS] -- COMMAND [ARGUMENTS]",
		Short: "Find bugs of a controller by faults at each of its writes",
		Long: `Find bugs of a controller in any language: start it with a server of its own, act as a user,
and inject crashes, lost responses, stale caches and late events at each of its writes.

This runs the program ` + verifyName + `, from the folder of this program or from PATH. Build
it in a clone of the repository: ` + buildVerify + `
Its flags are listed by: ` + verifyName + ` --help`,
		Example:            `  anykind verify --crds config/crd -f sample.yaml -- ./manager`,
		DisableFlagParsing: true,
		RunE:               runVerify,
	}
}

// passSignals passes signals to a program. An interrupt of the terminal reaches it anyway.
func passSignals(program *exec.Cmd) (undo func()) {
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range received {
			if s != os.Interrupt && program.Process != nil {
				_ = program.Process.Signal(s)
			}
		}
	}()
	return func() { signal.Stop(received); close(received) }
}

// runVerify runs the program, and returns its exit code as an error.
func runVerify(cmd *cobra.Command, args []string) error {
	path, err := exec.LookPath(verifyName)
	if own, e := os.Executable(); e == nil {
		if beside, e := exec.LookPath(filepath.Join(filepath.Dir(own), verifyName)); e == nil {
			path, err = beside, nil
		}
	}
	switch help := len(args) == 1 && (args[0] == "--help" || args[0] == "-h"); {
	case err != nil && help:
		return cmd.Help()
	case err != nil:
		return unsureError{fmt.Errorf("%w: build it in a clone of the repository, with %s", err, buildVerify)}
	}
	program := exec.Command(path, args...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, os.Stdout, os.Stderr
	defer passSignals(program)()
	err = program.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		return exitError(ended.ExitCode())
	}
	return err
}
