package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/catalog"
	"github.com/anykind/anykind/internal/offline/check"
)

// userCatalog returns the catalog of the user.
func userCatalog() (*catalog.Catalog, error) {
	folder, err := catalog.Default()
	return &catalog.Catalog{Folder: folder, Client: http.DefaultClient, Read: check.DefinitionTrees}, err
}

func catalogCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "catalog",
		Short: "Keep published CustomResourceDefinitions for anykind check",
		Long: `Keep published CustomResourceDefinitions for anykind check --catalog. The catalog is in the
folder anykind/catalog of the user's configuration (XDG_CONFIG_HOME). Its lock.json pins
each definition by its digest: a definition with other content is rejected.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(catalogAddCommand(), catalogListCommand(), catalogSearchCommand(), catalogUpdateCommand(),
		catalogSubcommand("remove NAME...", "Remove entries", "a name", func(_ *cobra.Command, c *catalog.Catalog, name string) error {
			return c.Remove(name)
		}))
	return c
}

// catalogSubcommand is a command that does something for each of its arguments.
func catalogSubcommand(use, short, argument string, do func(*cobra.Command, *catalog.Catalog, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: someArguments(argument), ValidArgsFunction: completeEntries,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := userCatalog()
			if err != nil {
				return err
			}
			for _, a := range args {
				if err := do(cmd, c, a); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func completeEntries(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	if c, err := userCatalog(); err == nil {
		entries, _ := c.Entries()
		for _, e := range entries {
			names = append(names, e.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func catalogAddCommand() *cobra.Command {
	var digest string
	c := &cobra.Command{
		Use:   "add NAME SOURCE",
		Short: "Add the CustomResourceDefinitions of a source",
		Long: `Add the CustomResourceDefinitions of a source under a name. SOURCE is a file, a folder, an
https URL, or a repository of git: URL//PATH?ref=REVISION. git and its credentials fetch
repositories.`,
		Example: `  anykind catalog add shop config/crd
  anykind catalog add cert-manager https://github.com/cert-manager/cert-manager/releases/download/v1.19.0/cert-manager.crds.yaml
  anykind catalog add gateway-api 'https://github.com/kubernetes-sigs/gateway-api.git//config/crd/standard?ref=v1.4.0'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("%s needs a name and a source; see %[1]s --help", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := userCatalog()
			if err != nil {
				return err
			}
			e, err := c.Add(cmd.Context(), args[0], args[1], digest)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d definitions, %s\n", e.Name, len(e.Definitions), e.Digest)
			return err
		},
	}
	c.Flags().StringVar(&digest, "digest", "", "digest that the definitions must have, as add prints it")
	return c
}
