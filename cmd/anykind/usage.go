package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
)

// addUsage prints the flags of a command, and of the commands below it, by section where they have
// sections. Other commands have cobra's usage.
func addUsage(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if flags.Section(f) != "" {
			c.SetUsageFunc(usageBySections)
		}
	})
	for _, below := range c.Commands() {
		addUsage(below)
	}
}

func usageBySections(c *cobra.Command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s\n", c.UseLine())
	if c.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", c.Example)
	}
	for _, s := range sectionsOf(c) {
		fmt.Fprintf(&text, "\n%s flags:\n", cmp.Or(s.title, "Global"))
		for _, f := range s.flags {
			writeFlag(&text, f)
		}
	}
	_, err := io.WriteString(c.OutOrStderr(), text.String())
	return err
}

// A flagSection is a section of help: its flags in the order of their definition.
type flagSection struct {
	title string
	flags []*pflag.Flag
}

// sectionsOf returns the sections of a command in the order of their first flags. Flags without a
// section come last.
func sectionsOf(c *cobra.Command) []flagSection {
	var all []flagSection
	var rest flagSection
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		title := flags.Section(f)
		if title == "" {
			rest.flags = append(rest.flags, f)
			return
		}
		at := slices.IndexFunc(all, func(s flagSection) bool { return s.title == title })
		if at < 0 {
			at = len(all)
			all = append(all, flagSection{title: title})
		}
		all[at].flags = append(all[at].flags, f)
	})
	if len(rest.flags) > 0 {
		all = append(all, rest)
	}
	return all
}
