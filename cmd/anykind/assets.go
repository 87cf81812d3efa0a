package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/offline/assets"
)

func assetsCommand() *cobra.Command {
	var folder assets.Folder
	cmd := &cobra.Command{
		Use:   "assets DIR",
		Short: "Create the KUBEBUILDER_ASSETS folder for envtest",
		Long: `Create a folder for tests that start a kube-apiserver, such as suites with envtest. It
contains kubectl, and this program under the names kube-apiserver and etcd.

With both, the server stores objects in memory until the test ends. With a real etcd, it
stores them there. kubectl comes from PATH; if it is missing there, Go builds it, which
takes a minute or two.`,
		Example: `  anykind assets bin/anykind
  KUBEBUILDER_ASSETS=$PWD/bin/anykind go test ./...`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("exactly one DIR is required, got %d; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		ValidArgsFunction: completeFolders(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder.Dir = args[0]
			return fill(cmd, folder)
		},
	}
	cmd.Flags().BoolVar(&folder.Copy, "copy", false, "copy the programs instead of linking them")
	return cmd
}

func fill(cmd *cobra.Command, f assets.Folder) (err error) {
	if f.Program, err = os.Executable(); err != nil {
		return err
	}
	if err := f.Fill(); err != nil {
		return err
	}
	kubectl, err := f.Kubectl()
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(cmd.ErrOrStderr(), "kubectl is not in PATH: building it")
		kubectl, err = "built", f.BuildKubectl(cmd.Context(), kubernetes.Modules)
	}
	if err != nil {
		return fmt.Errorf("%s has kube-apiserver and etcd, but no kubectl: %w", f.Dir, err)
	}
	return tellAssets(cmd.OutOrStdout(), f.Dir, kubectl)
}

func tellAssets(out io.Writer, dir, kubectl string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "kube-apiserver and etcd are anykind, kubectl is %s\n", kubectl)
	fmt.Fprintf(out, "to use them: export KUBEBUILDER_ASSETS=%s\n", quoteShell(dir))
	return nil
}
