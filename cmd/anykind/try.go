package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/store/encrypt"
)

type tryFlags struct {
	server           serverFlags
	namespace        string
	folder, snapshot string
	encryption       string
	output           outputFlag
	names            int
}

func tryCommand() *cobra.Command {
	var f tryFlags
	c := &cobra.Command{
		Use:   "try NEW",
		Short: "Validate stored objects against a new CustomResourceDefinition",
		Long: `Validate stored objects against a new CustomResourceDefinition: it reports objects that
every next write would reject, objects that could not be created again, and fields that
are pruned or defaulted. The command only reads, page by page; validation runs in this
process.

The objects come from a server (by a kubeconfig), from a data directory of anykind
(--data-dir), or from a snapshot of etcd (--etcd-snapshot). NEW can be a file, a folder,
or - for standard input.

Exit codes: 0 if no object is rejected or loses a field; 1 if one is rejected or loses a
field; 3 if objects cannot be read.`,
		Example: `  anykind crd try config/crd --server
  anykind crd try --kubeconfig prod.kubeconfig --context prod widgets.yaml
  anykind crd try --etcd-snapshot backup.db widgets.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usageError{fmt.Errorf("%s needs one file; see %[1]s --help", cmd.CommandPath())}
			case f.folder != "" && f.snapshot != "":
				return usageError{errors.New("--data-dir and --etcd-snapshot are mutually exclusive")}
			case f.encryption != "" && f.folder == "" && f.snapshot == "":
				return usageError{errors.New("--encryption-provider-config needs --data-dir or --etcd-snapshot: a server decrypts its objects itself")}
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

func (f *tryFlags) add(to *pflag.FlagSet) {
	to.SortFlags = false
	flags.AddSection(to, "Object", func(section *pflag.FlagSet) {
		section.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the objects (default: all)")
		section.StringVar(&f.folder, "data-dir", "", "data directory of a stopped anykind serve, instead of a server")
		section.StringVar(&f.snapshot, "etcd-snapshot", "", "file with a snapshot of etcd, instead of a server")
		section.StringVar(&f.encryption, "encryption-provider-config", "", "file with the EncryptionConfiguration of the server, for encrypted objects of --data-dir or --etcd-snapshot")
	})
	flags.AddSection(to, "Output", func(section *pflag.FlagSet) {
		addOutput(section, &f.output, "output format: text, json or yaml", "text", "json", "yaml")
		section.IntVar(&f.names, "names", 5, "maximum number of objects to name for each finding")
	})
	f.server.add(to)
}

// stored returns the source of the objects.
func (f *tryFlags) stored(keys *encrypt.Keyring) (check.Stored, error) {
	switch {
	case f.folder != "":
		return check.Folder(f.folder, keys), nil
	case f.snapshot != "":
		return check.Snapshot(f.snapshot, keys), nil
	}
	config, err := f.server.find()
	if err != nil {
		return nil, err
	}
	return &check.Server{Client: config.Client(), URL: config.URL, Namespace: f.namespace}, nil
}
