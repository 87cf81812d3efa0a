package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/offline/check"
)

type tryFlags struct {
	server           serverFlags
	namespace        string
	folder, snapshot string
	output           outputFlag
	names            int
}

func tryCommand() *cobra.Command {
	var f tryFlags
	c := &cobra.Command{
		Use:   "try NEW",
		Short: "Say what a new CustomResourceDefinition does to the objects that are stored",
		Long: `Say what a new CustomResourceDefinition does to the objects that are stored: which would
be refused on their next write whatever changes, which could not be created anew, and
which fields they lose or get. The objects are only read, one page after the other; the
new definition is tried in this process.

The objects are those of a server, by a kubeconfig; or of the data directory of anykind
(--data-dir), or of a snapshot of etcd (--etcd-snapshot). NEW may be a file, a folder, or
- for standard input. The exit code is 0 if no object is refused and none loses a field,
1 if any does, and 3 if objects could not be read.`,
		Example: `  anykind crd try config/crd --server
  anykind crd try --kubeconfig prod.kubeconfig --context prod widgets.yaml
  anykind crd try --etcd-snapshot backup.db widgets.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usageError{fmt.Errorf("%s needs one file; see %[1]s --help", cmd.CommandPath())}
			case f.folder != "" && f.snapshot != "":
				return usageError{errors.New("--data-dir and --etcd-snapshot exclude each other")}
			}
			return nil
		},
		ValidArgsFunction: completeManifests(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return try(cmd, &f, args) },
	}
	f.add(c.Flags())
	f.server.complete(c)
	return c
}

func (f *tryFlags) add(flags *pflag.FlagSet) {
	f.server.add(flags)
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only objects of this namespace (default: of all)")
	flags.StringVar(&f.folder, "data-dir", "", "read the objects from this data directory of anykind serve, which does not run")
	flags.StringVar(&f.snapshot, "etcd-snapshot", "", "read the objects from this snapshot of etcd")
	addOutput(flags, &f.output, "how to write what was found: text, json or yaml", "text", "json", "yaml")
	flags.IntVar(&f.names, "names", 5, "how many objects to name at most for each finding")
}

// stored is where the objects are.
func (f *tryFlags) stored() (check.Stored, error) {
	switch {
	case f.folder != "":
		return check.Folder(f.folder), nil
	case f.snapshot != "":
		return check.Snapshot(f.snapshot), nil
	}
	config, err := f.server.find()
	if err != nil {
		return nil, err
	}
	return &check.Server{Client: config.Client(), URL: config.URL, Namespace: f.namespace}, nil
}
