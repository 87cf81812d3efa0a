package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/fork"
)

type forkFlags struct {
	objectFlags
	spec     fork.Spec
	asOf     string
	replay   bool
	speed    string
	without  []string
	webhooks string
	file     string
}

func forkCommand() *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork NAME",
		Short: "Copy a running server, to try changes",
		Long: `Make a fork of a running server: a copy with all its objects, definitions and rights, which
shares each object until one of the two changes it. It takes a millisecond. Changes in the
fork have no effect outside: admission, quotas and controllers work in it, but it reaches
no pods, nodes, Services and other API servers. Admission webhooks are told of a dry run.

The command writes a kubeconfig for the fork, with the credentials of the one in use.
With --as-of and --replay, the fork repeats the later changes of the server, as a test for a
controller.

anykind diff --fork NAME shows the changes in a fork, and anykind fork merge NAME brings
them into the server. A fork ends with its server.`,
		Example: `  anykind fork upgrade
  KUBECONFIG=upgrade.kubeconfig kubectl apply -f manifests
  anykind diff --fork upgrade
  anykind fork merge upgrade --yes
  anykind fork delete upgrade`,
		Args: forkName,
		RunE: func(cmd *cobra.Command, args []string) error { return f.make(cmd, args[0]) },
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Fork", func(section *pflag.FlagSet) {
		section.StringVarP(&f.file, "output-file", "o", "", "file for the kubeconfig of the fork (default: NAME.kubeconfig)")
		section.StringVar(&f.asOf, "as-of", "", "moment of the state to copy: a time, a duration before now, or a revision (default: now)")
		section.StringVar(&f.webhooks, "webhooks", "dry-run", "admission webhooks: dry-run tells them of a dry run, none leaves them out")
		section.BoolVar(&f.replay, "replay", false, "repeat in the fork the changes of the server after --as-of, without controllers")
		section.StringVar(&f.speed, "speed", "max", "speed of --replay: 60 repeats an hour in a minute, max does not wait")
		section.StringSliceVar(&f.without, "without-user", nil, "users whose changes --replay leaves out, such as that of a controller to test")
		section.StringVar(&f.spec.Lifetime, "lifetime", "", "time after which the fork is deleted, such as 1h (default: never)")
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	cmd.AddCommand(forkListCommand(), forkDeleteCommand(), forkMergeCommand())
	return cmd
}

// forkName accepts one name.
func forkName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s needs the NAME of a fork; see %[1]s --help", cmd.CommandPath())}
	}
	return nil
}
