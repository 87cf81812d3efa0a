// Command anykind serves the Kubernetes API for any kind, without the cluster.
//
// It reads flags, handles signals and writes to the terminal. The package internal/app runs the
// server.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[0], os.Args[1:], time.Now()))
}

// run runs the command for the name of the executable, and returns the exit code.
func run(name string, args []string, started time.Time) int {
	var root *cobra.Command
	switch strings.TrimSuffix(filepath.Base(name), ".exe") {
	case "kube-apiserver":
		root = apiServerCommand(started)
	case "etcd":
		root = etcdCommand()
	case kubectlName:
		root = asPlugin(anykindCommand(name, started))
	case completeName:
		root, args = asPlugin(anykindCommand(name, started)), completeArguments(args)
	case createName:
		root = alone(asPlugin(anykindCommand(name, started)), "kubectl create crd", created()...)
	default:
		root = anykindCommand(name, started)
	}
	addUsage(root)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetArgs(withoutBareServer(args))
	err := root.Execute()
	if err == nil {
		return 0
	}
	var code exitError
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", root.DisplayName(), err)
	var usage usageError
	if errors.As(err, &usage) || unknownCommand(root, args) {
		return exitUsage
	}
	var unsure unsureError
	if errors.As(err, &unsure) {
		return exitUnsure
	}
	return exitFailed
}

func unknownCommand(root *cobra.Command, args []string) bool {
	_, _, err := root.Find(args)
	return err != nil
}

// anykindCommand is the command anykind, also as a plugin of kubectl.
func anykindCommand(called string, started time.Time) *cobra.Command {
	root := &cobra.Command{
		Use:   "anykind",
		Short: "The Kubernetes API for any kind, without the cluster",
		Long: `anykind is a Kubernetes API server in one process. It serves CustomResourceDefinitions,
their objects and every built-in kind to kubectl and all other clients.`,
	}
	root.AddCommand(serveCommand(started), assetsCommand(), userCommand(), migrateCommand(), backupCommand(), restoreCommand(), getCommand(),
		historyCommand(), blameCommand(), objectDiffCommand(), undoCommand(), forgetCommand(), forkCommand(),
		checkCommand(), catalogCommand(), convertCommand(), lspCommand(), crdCommand(), versionCommand(), describeCommand(), consoleCommand(), verifyCommand())
	root.AddCommand(pluginCommand(called))
	addCompletion(root)
	return root
}
