package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/history"
)

type historyFlags struct {
	objectFlags
	output outputFlag
	limit  int
	since  string
}

func historyCommand() *cobra.Command {
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "history KIND NAME",
		Short: "List the changes of an object",
		Long: `List the changes of an object, the oldest first: the revision, the time, the user with the
field manager in parentheses, the verb, and the fields with their values before and after.
The object may be deleted.

The server must keep a history (anykind serve --history=30d). Of another server, the
command shows metadata.managedFields and the Events of the object.

-o json and -o yaml print the ChangeList of the server, with the whole object before and
after each change.`,
		Example: `  anykind history deployment web
  anykind history configmap/settings -n prod --since 2h -o yaml`,
		Args:              oneObject,
		ValidArgsFunction: f.completeObject(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return listChanges(cmd, &f, args) },
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "History", func(section *pflag.FlagSet) {
		section.IntVar(&f.limit, "limit", 0, "maximum number of changes, the newest ones; 0 for all")
		section.StringVar(&f.since, "since", "", "time or duration before now, such as 2026-11-20T08:00:00Z or 2h: later changes only")
		addOutput(section, &f.output, "output format: text, json or yaml", "text", "json", "yaml")
		f.add(section)
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

func listChanges(cmd *cobra.Command, f *historyFlags, args []string) error {
	var since time.Time
	if f.since != "" {
		var err error
		if since, err = history.ParseTime(f.since, time.Now()); err != nil {
			return usageError{fmt.Errorf("--since is %w", err)}
		}
	}
	return f.useOne(args, func(ctx context.Context, c history.Client, o history.Object) error {
		list, err := c.Changes(ctx, o, f.limit, "")
		if errors.Is(err, history.ErrNone) && f.output.String() == "text" {
			return traces(ctx, cmd, c, o, since, f.limit)
		}
		if err != nil {
			return err
		}
		list.Since(since)
		return writeFound(cmd, &f.output, history.Write, writeIndented, list)
	})
}

// traces shows the history of an object that a server without a history has.
func traces(ctx context.Context, cmd *cobra.Command, c history.Client, o history.Object, since time.Time, limit int) error {
	now, err := c.Present(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%v; managedFields and Events follow\n", history.ErrNone)
	return c.WriteManaged(ctx, cmd.OutOrStdout(), now, since, limit)
}

func writeIndented[T any](out io.Writer, value T) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	return e.Encode(value)
}
