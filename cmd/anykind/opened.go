package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/backup"
)

// openedFlags name a file with objects, and objects in it.
type openedFlags struct {
	backup.Selection
	from app.Options
}

func (f *openedFlags) add(section *pflag.FlagSet) {
	section.StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the objects (default: all namespaces)")
	section.StringVar(&f.from.Encryption.ConfigFile, "encryption-provider-config", "", "file with the EncryptionConfiguration for encrypted objects of FILE")
	section.StringVar(&f.from.Etcd.Prefix, "etcd-prefix", "", "prefix of the keys in a snapshot of etcd (default /registry)")
}

// serve calls use with a server of the file, for this process.
func (f *openedFlags) serve(ctx context.Context, use func(apiclient.Server) error) (err error) {
	dir, err := os.MkdirTemp("", "anykind-opened-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f.from.Kubeconfig = filepath.Join(dir, "kubeconfig")
	a, err := app.Start(ctx, f.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(a)) }()
	opened, err := kubeconfig.Open(f.from.Kubeconfig)
	if err != nil {
		return err
	}
	from := apiclient.Server{Client: opened.Client(), URL: opened.URL, Name: "the file"}
	defer from.Client.CloseIdleConnections()
	return use(from)
}
