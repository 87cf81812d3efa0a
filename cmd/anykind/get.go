package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/backup"
	"github.com/anykind/anykind/internal/offline/history"
)

type getFlags struct {
	openedFlags
	server       objectFlags
	asOf, format string
}

func getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get KIND[/NAME]... {--from FILE | --as-of TIME}",
		Short: "Print objects of a backup, or earlier ones of a server",
		Long: `Print objects of FILE: a backup, the data directory of a stopped server, or a snapshot of
etcd. It is not changed. Or print the objects that a running server had at a time. It must
keep a history (anykind serve --history=30d). All objects of a KIND are printed, or one.`,
		Example: `  anykind get deployments --from nightly.db
  anykind get configmaps/settings --namespace default --from nightly.db -o yaml
  anykind get pods --namespace default --as-of 2h`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || f.from.Open == "" && f.asOf == "":
				return usageError{fmt.Errorf("%s needs kinds and --from FILE, or --as-of TIME; see %[1]s --help", cmd.CommandPath())}
			case f.from.Open != "" && f.asOf != "":
				return usageError{errors.New("--from and --as-of are mutually exclusive")}
			case !slices.Contains(backup.Formats, f.format):
				return usageError{fmt.Errorf("--output is %q; want %s", f.format, strings.Join(backup.Formats, ", "))}
			}
			return nil
		},
		ValidArgsFunction: f.server.completeObject(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Objects = args
			ctx, restore := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer restore()
			get := func(from apiclient.Server) error {
				return backup.Get(ctx, from, f.Selection, f.format, cmd.OutOrStdout())
			}
			if f.asOf != "" {
				return f.earlier(get)
			}
			return f.serve(ctx, get)
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Objects", func(section *pflag.FlagSet) {
		section.StringVar(&f.from.Open, "from", "", "file or data directory with the objects")
		section.StringVar(&f.asOf, "as-of", "", "time of the objects, or duration before now, such as 2026-11-20T08:00:00Z or 2h")
		section.StringVarP(&f.format, "output", "o", "table", "format: "+strings.Join(backup.Formats, ", "))
		f.add(section)
	})
	f.server.server.add(cmd.Flags())
	f.server.server.complete(cmd)
	return cmd
}

// earlier calls get with the running server, for the time of the flag.
func (f *getFlags) earlier(get func(apiclient.Server) error) error {
	at, err := history.ParseTime(f.asOf, time.Now())
	if err != nil {
		return usageError{fmt.Errorf("--as-of is %w", err)}
	}
	f.AsOf = at.UTC().Format(time.RFC3339Nano)
	return f.server.use(func(ctx context.Context, c history.Client, namespace string) error {
		if f.Namespace == "" && strings.Contains(strings.Join(f.Objects, ""), "/") {
			f.Namespace = namespace // of the named objects
		}
		kinds, err := c.Kinds(ctx)
		if err != nil {
			return err
		}
		objects, err := found(c, kinds, f.Objects, f.Namespace)
		for i := 0; i < len(objects) && err == nil; i++ {
			err = c.Kept(ctx, objects[i])
		}
		if err != nil {
			return err
		}
		return get(c.Server)
	})
}
