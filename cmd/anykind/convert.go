package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/conversion"
)

// convertFlags are the flags of anykind convert.
type convertFlags struct {
	version     string
	definitions []string
	output      outputFlag
}

func convertCommand() *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "convert FILE...",
		Short: "Convert custom objects to another version by rules, offline",
		Long: `Convert the custom objects in YAML or JSON files to another version of their kind, as a
server with the same conversion rules would.

The definitions and their rules (CRDConversionConfigs, or the annotation
anykind.dev/conversion) come from the files of --crds, or stand among the objects. A
FILE can be a folder of files, or - for standard input.

Exit codes: 0 if all objects are converted; 1 if an object has a value that the rules do
not allow, or if rules are not valid.`,
		Example: `  anykind convert widgets.yaml --to v2 --crds config/crd
  kubectl get widgets -o yaml | anykind convert - --to v1beta1 --crds crd.yaml,rules.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.version == "" && len(args) > 0 {
				return usageError{fmt.Errorf("%s needs --to VERSION; see %[1]s --help", cmd.CommandPath())}
			}
			return someArguments("a file")(cmd, args)
		},
		ValidArgsFunction: completeManifests(anyNumber),
		RunE:              func(cmd *cobra.Command, args []string) error { return convert(cmd, &f, args) },
	}
	c.Flags().StringVar(&f.version, "to", "", "version of the results")
	c.Flags().StringSliceVar(&f.definitions, "crds", nil, "files and folders with CustomResourceDefinitions and CRDConversionConfigs")
	addOutput(c.Flags(), &f.output, "output format: yaml or json", "yaml", "json")
	c.AddCommand(convertServeCommand())
	return c
}

func convert(cmd *cobra.Command, f *convertFlags, args []string) error {
	var in []byte
	if slices.Contains(args, "-") {
		var err error
		if in, err = io.ReadAll(cmd.InOrStdin()); err != nil {
			return err
		}
	}
	definitions, err := conversion.Read(append(slices.Clone(f.definitions), args...), strings.NewReader(string(in)))
	if err != nil {
		return err
	}
	warnOfRules(cmd.ErrOrStderr(), definitions)
	first, converted := true, 0
	err = definitions.Files(cmd.Context(), args, in, f.version, func(t object.Tree) error {
		converted++
		text := append(object.AppendJSON(nil, t), '\n')
		if f.output.form == "yaml" {
			var err error
			if text, err = yaml.JSONToYAML(text); err != nil {
				return err
			}
			if !first {
				text = append([]byte("---\n"), text...)
			}
		}
		first = false
		_, err := cmd.OutOrStdout().Write(text)
		return err
	})
	if err == nil && converted == 0 {
		return fmt.Errorf("there are no objects in %v", args)
	}
	return err
}

func warnOfRules(w io.Writer, definitions *conversion.Definitions) {
	for _, text := range definitions.Warnings() {
		fmt.Fprintln(w, "Warning:", text)
	}
}

// convertServeFlags are the flags of anykind convert serve.
type convertServeFlags struct {
	address   net.IP
	port      int
	hosts     []string
	cert, key string
	certDir   string
}

func convertServeCommand() *cobra.Command {
	var f convertServeFlags
	c := &cobra.Command{
		Use:   "serve FILE...",
		Short: "Run a conversion webhook that converts by rules",
		Long: `Run a conversion webhook for other API servers, with the definitions and rules in files.
It answers ConversionReviews of v1 and v1beta1 at every path, and reads the files again when they
change. Invalid changes are logged, and the previous rules stay in effect.

Without --tls-cert-file, it creates a certificate, and prints patches with which definitions
use the webhook and trust the certificate.`,
		Example: `  anykind convert serve crd.yaml rules.yaml --host webhook.example.com
  anykind convert serve /etc/rules --tls-cert-file tls.crt --tls-private-key-file tls.key`,
		Args:              someArguments("a file"),
		ValidArgsFunction: completeManifests(anyNumber),
		RunE:              func(cmd *cobra.Command, args []string) error { return convertServe(cmd, &f, args) },
	}
	c.Flags().SortFlags = false
	flags.AddSection(c.Flags(), "Serving", func(section *pflag.FlagSet) {
		section.IPVar(&f.address, "bind-address", net.IPv4zero, "address to listen on")
		section.IntVar(&f.port, "secure-port", 9443, "port to listen on; 0 chooses a free one")
		section.StringVar(&f.cert, "tls-cert-file", "", "PEM file with the serving certificate; it is read again when it changes")
		section.StringVar(&f.key, "tls-private-key-file", "", "PEM file with the private key of --tls-cert-file")
		section.StringVar(&f.certDir, "cert-dir", "", "folder in which a created certificate is kept; without it, each start creates one")
		section.StringSliceVar(&f.hosts, "host", nil, "names and addresses of this machine for a created certificate; the first one is that of printed patches")
	})
	return c
}

func convertServe(cmd *cobra.Command, f *convertServeFlags, args []string) error {
	if slices.Contains(args, "-") {
		return usageError{errors.New("a webhook reads its files again: standard input cannot be one of them")}
	}
	definitions, err := conversion.Read(args, nil)
	if err != nil {
		return err
	}
	if len(definitions.WithRules()) == 0 {
		return fmt.Errorf("there are no conversion rules in %v", args)
	}
	warnOfRules(cmd.ErrOrStderr(), definitions)
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	certificate, ca, err := f.certificate(log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(f.address.String(), strconv.Itoa(f.port)))
	if err != nil {
		return err
	}
	var present atomic.Pointer[conversion.Definitions]
	present.Store(definitions)
	told, restore := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	go reread(told, args, &present, log)
	server := &http.Server{
		Handler:           &conversion.Webhook{Definitions: present.Load},
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	context.AfterFunc(told, func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	f.greet(cmd.OutOrStdout(), listener.Addr(), ca, definitions)
	err = server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate, NextProtos: []string{"h2", "http/1.1"}}))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// certificate returns the serving certificate, and the CA of one that was created.
func (f *convertServeFlags) certificate(log *slog.Logger) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), []byte, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, nil, usageError{errors.New("--tls-cert-file and --tls-private-key-file belong together")}
	}
	if f.cert != "" {
		loaded, err := pki.LoadCertificate(f.cert, f.key, log)
		if err != nil {
			return nil, nil, err
		}
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return loaded.Get(), nil }, nil, nil
	}
	made, err := pki.Open(f.certDir, append(slices.Clone(f.hosts), pki.Hosts(f.address.String())...))
	if err != nil {
		return nil, nil, err
	}
	return made.GetCertificate, made.CA(), nil
}

// greet prints how definitions use the webhook.
func (f *convertServeFlags) greet(w io.Writer, at net.Addr, ca []byte, definitions *conversion.Definitions) {
	host := "localhost"
	if len(f.hosts) > 0 {
		host = f.hosts[0]
	} else if !f.address.IsUnspecified() {
		host = f.address.String()
	}
	_, port, _ := net.SplitHostPort(at.String())
	url := "https://" + net.JoinHostPort(host, port) + "/convert"
	for _, d := range definitions.WithRules() {
		fmt.Fprintf(w, "kubectl patch crd %s --type merge -p '%s'\n", d.Name, conversion.Patch(url, ca))
	}
	fmt.Fprintf(w, "the conversion webhook listens on %s\n", at)
}

// rereadAfter is the interval between checks of the files of a webhook.
const rereadAfter = 2 * time.Second

// reread reads the files of a webhook again until ctx ends.
func reread(ctx context.Context, paths []string, present *atomic.Pointer[conversion.Definitions], log *slog.Logger) {
	last, failed := check.Fingerprint(paths), ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rereadAfter):
		}
		now := check.Fingerprint(paths)
		if now == last && failed == "" {
			continue
		}
		next, err := conversion.Read(paths, nil)
		switch {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			log.Error("changed rules are invalid; the previous ones stay in effect", "error", err)
		case err == nil:
			present.Store(next)
			last, failed = now, ""
			log.Info("changed rules are in effect")
		}
	}
}
