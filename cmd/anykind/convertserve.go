package main

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/conversion"
)

func convertServeCommand() *cobra.Command {
	var o conversion.Serving
	c := &cobra.Command{
		Use:   "serve FILE...",
		Short: "Run a conversion webhook that converts by rules",
		Long: `Run a conversion webhook for other API servers, with the definitions and rules in files. It
answers ConversionReviews of v1 and v1beta1 at every path, and reads the files again when
they change. Invalid changes are logged, and the previous rules stay in effect.

Without --tls-cert-file, it creates a certificate. It prints patches with which the
definitions use the webhook and trust that certificate.`,
		Example: `  anykind convert serve crd.yaml rules.yaml --host webhook.example.com
  anykind convert serve /etc/rules --tls-cert-file tls.crt --tls-private-key-file tls.key`,
		Args:              someArguments("a file"),
		ValidArgsFunction: completeManifests(anyNumber),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case slices.Contains(args, "-"):
				return usageError{errors.New("a webhook reads its files again: standard input cannot be one of them")}
			case (o.CertFile == "") != (o.KeyFile == ""):
				return usageError{errors.New("--tls-cert-file and --tls-private-key-file belong together")}
			}
			told, restore := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer restore()
			o.Read = func() ([]*v1.CustomResourceDefinition, error) { return check.Convertible(args, nil) }
			o.State = func() string { return check.Fingerprint(args) }
			o.Log, o.Out = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)), cmd.OutOrStdout()
			return o.Run(told)
		},
	}
	c.Flags().SortFlags = false
	flags.AddSection(c.Flags(), "Serving", func(section *pflag.FlagSet) {
		section.IPVar(&o.Address, "bind-address", net.IPv4zero, "address to listen on")
		section.IntVar(&o.Port, "secure-port", 9443, "port to listen on; 0 chooses a free one")
		section.StringVar(&o.CertFile, "tls-cert-file", "", "PEM file with the serving certificate; it is read again when it changes")
		section.StringVar(&o.KeyFile, "tls-private-key-file", "", "PEM file with the private key of --tls-cert-file")
		section.StringVar(&o.CertDir, "cert-dir", "", "folder in which a created certificate is kept; without it, each start creates one")
		section.StringSliceVar(&o.Hosts, "host", nil, "names and addresses of this machine for a created certificate; the first one is in printed patches")
	})
	return c
}
