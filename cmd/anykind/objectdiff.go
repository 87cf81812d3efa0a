package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/history"
)

type momentFlags struct {
	objectFlags
	from, to string
	all      bool
	fork     string
}

// objectDiffCommand compares moments; diffCommand compares definitions.
func objectDiffCommand() *cobra.Command {
	var f momentFlags
	cmd := &cobra.Command{
		Use:   "diff KIND [NAME] --from TIME | diff --fork NAME",
		Short: "Compare objects at two moments",
		Long: `Compare objects at two moments: created, deleted and changed objects, and each changed
field with both values. It compares one object, all objects of a KIND in a namespace, or
with --all those of every kind. With --all and without -n, it compares all namespaces
and cluster-scoped kinds, too. Several kinds are separated by commas.

A moment is a time, a duration before now, or a revision. The server must keep a history
(anykind serve --history=30d).

With --fork, it shows the objects that have changed in a fork (anykind fork).`,
		Example: `  anykind diff deployment web --from 2h
  anykind diff configmaps,secrets -n prod --from 2026-11-20T08:00:00Z --to 2026-11-20T09:00:00Z
  anykind diff --all -n prod --from 1234
  anykind diff --fork upgrade`,
		Args:              f.check,
		ValidArgsFunction: f.completeObject(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.fork != "" {
				return f.compareFork(cmd)
			}
			return f.compare(cmd, args)
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Objects", func(section *pflag.FlagSet) {
		section.StringVar(&f.from, "from", "", "the earlier moment: a time, a duration before now, or a revision")
		section.StringVar(&f.to, "to", "", "the later moment (default: now)")
		section.BoolVar(&f.all, "all", false, "compare the objects of every kind")
		section.StringVar(&f.fork, "fork", "", "show the changes in this fork")
		f.add(section)
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	register(cmd, "fork", f.completeFork())
	return cmd
}

func (f *momentFlags) compare(cmd *cobra.Command, args []string) error {
	now := time.Now()
	from, err := history.ParseMoment(f.from, now)
	if err != nil {
		return usageError{fmt.Errorf("--from is %w", err)}
	}
	var to history.Moment
	if f.to != "" {
		if to, err = history.ParseMoment(f.to, now); err != nil {
			return usageError{fmt.Errorf("--to is %w", err)}
		}
	}
	return f.use(func(ctx context.Context, c history.Client, namespace string) error {
		objects, err := named(ctx, c, args, namespace)
		if f.all {
			objects, err = everyKind(ctx, c, f.namespace)
		}
		if err != nil {
			return err
		}
		changed, err := c.Between(ctx, objects, from, to, f.all)
		if err != nil {
			return err
		}
		return history.WriteChanged(cmd.OutOrStdout(), changed)
	})
}
