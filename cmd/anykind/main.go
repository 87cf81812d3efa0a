// Command anykind serves the Kubernetes API for any kind, without the cluster.
//
// It knows flags, signals and what to tell the person at the terminal. What the
// flags mean for a server is internal/app's.
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

// run runs the command of the name under which the program was called, and returns the exit code.
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
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetArgs(withoutBareServer(args))
	err := root.Execute()
	if err == nil {
		return 0
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

// anykindCommand is the program under its own name, and under that of a plugin of kubectl.
func anykindCommand(called string, started time.Time) *cobra.Command {
	root := &cobra.Command{
		Use:   "anykind",
		Short: "The Kubernetes API for any kind, without the cluster",
		Long: `anykind serves the kinds of Kubernetes, CustomResourceDefinitions and their objects
as a Kubernetes API server does, to kubectl and every other client, from one process.`,
	}
	root.AddCommand(serveCommand(started), assetsCommand(), userCommand(), migrateCommand(), checkCommand(), crdCommand(), versionCommand(), describeCommand())
	root.AddCommand(pluginCommand(called))
	addCompletion(root)
	return root
}
