package main

import (
	"context"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/fork"
	"github.com/anykind/anykind/internal/offline/history"
)

func forkListCommand() *cobra.Command {
	var f objectFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the forks of a server",
		Long:  `List the forks of a server: the revision that each begins with, its age and its user.`,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(func(ctx context.Context, c history.Client, _ string) error {
				all, err := fork.Of(c.Server).List(ctx)
				if err != nil {
					return err
				}
				out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(out, "NAME\tREVISION\tAGE\tEXPIRES\tBY\tREPLAYED")
				for _, f := range all {
					expires := "never"
					if f.Expires != nil {
						expires = f.Expires.UTC().Format(time.RFC3339)
					}
					fmt.Fprintf(out, "%s\t%s\t%v\t%s\t%s\t%s\n", f.Name, f.ResourceVersion, time.Since(f.Created).Round(time.Second), expires, f.By, replayed(&f))
				}
				return out.Flush()
			})
		},
	}
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// replayed returns the progress of the replay of a fork.
func replayed(f *fork.Fork) string {
	switch r := f.Replayed; {
	case r == nil:
		return "-"
	case r.Error != "":
		return "failed: " + r.Error
	case r.Done:
		return "all"
	case r.Time.IsZero():
		return "nothing yet"
	default:
		return "until " + r.Time.UTC().Format(time.RFC3339)
	}
}

func forkDeleteCommand() *cobra.Command {
	var f objectFlags
	cmd := &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a fork with its changes",
		Long:              `Delete a fork with its changes. The server is as it was.`,
		Args:              forkName,
		ValidArgsFunction: f.completeFork(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(func(ctx context.Context, c history.Client, _ string) error {
				err := fork.Of(c.Server).Delete(ctx, args[0])
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "fork %s deleted\n", args[0])
				}
				return err
			})
		},
	}
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

// completeFork completes the name of a fork.
func (f *objectFlags) completeFork() cobra.CompletionFunc {
	return f.server.asking(func(ctx context.Context, client *http.Client, url string) ([]string, error) {
		all, err := fork.Of(apiclient.Server{Client: client, URL: url}).List(ctx)
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		return names, err
	})
}
