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
		Short: "Install or uninstall this program as a plugin of kubectl",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(installCommand(called), uninstallCommand(called))
	return c
}

func installCommand(called string) *cobra.Command {
	return &cobra.Command{
		Use:   "install [DIR]",
		Short: "Install this program as a plugin of kubectl",
		Long: `Install this program as a plugin of kubectl: ` + kubectlName + ` runs kubectl anykind, and
` + completeName + ` completes its command line.

The plugins are links in the folder of this program, or in DIR. That folder should be in PATH.
The links remain valid when a later version replaces the program. On Windows they are
copies: install them again after an update. Existing files, such as those of krew, are not
replaced.`,
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
				return fmt.Errorf("%w: name a writable folder of PATH, such as %s", err, ownFolder(f.Path))
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
		Short: "Remove the links of plugin install",
		Long: `Remove the links of plugin install from the folder of this program, or from DIR. Other
programs and links stay.`,
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
				fmt.Fprintf(cmd.OutOrStdout(), "%s has no links of plugin install\n", f.Dir)
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
