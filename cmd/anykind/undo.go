package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/history"
)

type undoFlags struct {
	objectFlags
	change, toRevision string
	by, since          string
	force, yes         bool
}

func undoCommand() *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use:   "undo KIND NAME",
		Short: "Undo changes of objects",
		Long: `Undo the last change of an object, another change (--change), all changes since a revision
(--to-revision), or all changes of a user since a time (--by U --since TIME [KIND...]).

Each field that the change set gets the value before the change. A field that has another
value since then is a conflict: nothing is written, unless --force puts back the value
before the change. A created object is deleted, and a deleted one is created anew, with a
new uid and without its status. Changes of the status are undone by --change only.

The command prints the result of a dry run of the server. With --yes it then writes. A
change in between fails the write. The server must keep a history (anykind serve
--history=30d).`,
		Example: `  anykind undo deployment web
  anykind undo deployment web --change 1234 --yes
  anykind undo --by jane --since 2h -n prod`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case (f.by == "") != (f.since == ""):
				return usageError{errors.New("--by and --since go together")}
			case f.change != "" && f.toRevision != "" || f.by != "" && f.change+f.toRevision != "":
				return usageError{errors.New("--change, --to-revision and --by are mutually exclusive")}
			case f.by != "":
				return nil
			}
			return oneObject(cmd, args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return f.completeObject(f.by == "")(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(func(ctx context.Context, c history.Client, namespace string) error {
				steps, err := f.steps(ctx, c, args, namespace)
				if err != nil {
					return err
				}
				return f.undo(ctx, cmd, c, steps)
			})
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Undo", func(section *pflag.FlagSet) {
		section.StringVar(&f.change, "change", "", "revision of the change to undo (default: the last one)")
		section.StringVar(&f.toRevision, "to-revision", "", "revision to which the object returns")
		section.StringVar(&f.by, "by", "", "user whose changes are undone")
		section.StringVar(&f.since, "since", "", "time or duration before now, such as 2026-11-20T08:00:00Z or 2h, with --by")
		section.BoolVar(&f.force, "force", false, "put back fields that were changed again, too")
		section.BoolVar(&f.yes, "yes", false, "write, after the dry run")
		section.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the objects (default: that of the context; with --by: all)")
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

// undo prints the dry run of steps, and writes them.
func (f *undoFlags) undo(ctx context.Context, cmd *cobra.Command, c history.Client, steps []*history.Step) error {
	out := cmd.OutOrStdout()
	todo, err := c.Prepare(ctx, steps, f.force)
	history.WritePlan(out, steps)
	switch {
	case err != nil:
		return err
	case !todo:
		fmt.Fprintln(out, "nothing to write")
		return nil
	case !f.yes:
		fmt.Fprintln(out, "dry run: nothing is written; --yes writes")
		return nil
	}
	return c.Write(ctx, steps, func(s *history.Step, result string) { fmt.Fprintln(out, s.Title(), result) })
}
