package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/catalog"
)

func catalogListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the entries",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := userCatalog()
			if err != nil {
				return err
			}
			entries, err := c.Entries()
			if err != nil {
				return err
			}
			out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(out, "NAME\tDEFINITIONS\tDIGEST\tSOURCE")
			for _, e := range entries {
				fmt.Fprintf(out, "%s\t%d\t%.19s\t%s\n", e.Name, len(e.Definitions), e.Digest, e.Source)
			}
			return out.Flush()
		},
	}
}

func catalogUpdateCommand() *cobra.Command {
	return catalogSubcommand("update NAME...", "Fetch the sources of entries again, and pin their new content", "a name",
		func(cmd *cobra.Command, c *catalog.Catalog, name string) error {
			old, now, err := c.Update(cmd.Context(), name)
			if err != nil {
				return err
			}
			change := "unchanged"
			if old.Digest != now.Digest {
				change = old.Digest + " → " + now.Digest
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d definitions, %s\n", name, len(now.Definitions), change)
			return err
		})
}

// maxFields limits the fields of a definition in the output of a search.
const maxFields = 10

func catalogSearchCommand() *cobra.Command {
	c := catalogSubcommand("search WORD...", "Find definitions by group, kind, field path and description", "a word",
		func(cmd *cobra.Command, c *catalog.Catalog, word string) error {
			matches, err := c.Search(word)
			if err != nil {
				return err
			}
			if len(matches) == 0 {
				return fmt.Errorf("no definition of the catalog has %q in its names, field paths or descriptions", word)
			}
			for _, m := range matches {
				if err := writeMatch(cmd.OutOrStdout(), m); err != nil {
					return err
				}
			}
			return nil
		})
	c.ValidArgsFunction = cobra.NoFileCompletions
	return c
}

func writeMatch(out io.Writer, m catalog.Match) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s/%s %s (%s)\n", m.Group, m.Version, m.Kind, m.Entry)
	for _, f := range m.Fields[:min(maxFields, len(m.Fields))] {
		description, _, _ := strings.Cut(strings.TrimSpace(f.Description), "\n")
		fmt.Fprintln(&text, strings.TrimRight("  "+f.Path+" <"+f.Type+"> "+description, " "))
	}
	if more := len(m.Fields) - maxFields; more > 0 {
		fmt.Fprintf(&text, "  and %d more fields\n", more)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
