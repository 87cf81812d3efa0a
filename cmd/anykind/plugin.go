package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/plugin"
)

func pluginCommand(called string) *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Make this program a plugin of kubectl, or no plugin any more",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(installCommand(called), uninstallCommand(called))
	return c
}

func installCommand(called string) *cobra.Command {
	return &cobra.Command{
		Use:   "install [DIR]",
		Short: "Make the names by which kubectl finds this program as its plugin",
		Long: `Make the names by which kubectl finds this program as its plugin: ` + kubectlName + `,
so that kubectl anykind does what anykind does, and ` + completeName + `,
by which kubectl completes what you type.

The names are links, in the folder in which this program is, or in DIR, which should be
one of PATH. They go on to work when the program is replaced by a later version. On
Windows they are copies: install them again then. Names that krew or somebody else
made stay.`,
		Example: `  anykind plugin install
  anykind plugin install ~/.local/bin`,
		Args:              atMostOneFolder,
		ValidArgsFunction: completeFolders(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := plugin.Here(called, strings.Join(args, ""), pluginNames(cmd.Root())...)
			if err != nil {
				return err
			}
			actions, err := f.Install()
			if errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("%w: name a folder of PATH that you may write to, such as %s", err, ownFolder(f.Path))
			}
			if err != nil {
				return err
			}
			tell(cmd.OutOrStdout(), actions)
			if warn(cmd.ErrOrStderr(), f) {
				fmt.Fprintln(cmd.OutOrStdout(), "to use it: kubectl anykind --help")
			}
			return nil
		},
	}
}

func uninstallCommand(called string) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall [DIR]",
		Short: "Take away the names that plugin install made",
		Long: `Take away the names that plugin install made, from the folder in which this program
is, or from DIR. Programs and links that somebody else made stay.`,
		Args:              atMostOneFolder,
		ValidArgsFunction: completeFolders(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := plugin.Here(called, strings.Join(args, ""), pluginNames(cmd.Root())...)
			if err != nil {
				return err
			}
			actions, err := f.Uninstall()
			tell(cmd.OutOrStdout(), actions)
			if err == nil && len(actions) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "there is nothing in %s\n", f.Dir)
			}
			return err
		},
	}
}

func atMostOneFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError{fmt.Errorf("%s takes one folder, got %d; see %[1]s --help", cmd.CommandPath(), len(args))}
	}
	return nil
}
