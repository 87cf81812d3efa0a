package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/atomicfile"
	"github.com/anykind/anykind/internal/etcddoor"
	"github.com/anykind/anykind/internal/pki"
)

// serve serves until a signal.
func (f *apiServerFlags) serve(started time.Time) error {
	if len(f.etcd.Servers) == 0 {
		return errors.New("--etcd-servers must be specified")
	}
	if err := errors.Join(f.taken.refused(), checkDirectives(f.strict)); err != nil {
		return err
	}
	log := f.log()
	for _, name := range f.taken.given() {
		log.Warn("flag is accepted, and changes nothing here", "flag", "--"+name)
	}
	for _, name := range f.gates.unchanged {
		log.Warn("feature gate is accepted, and cannot be changed here", "gate", name)
	}
	if err := f.certificate(); err != nil {
		return err
	}
	return serve(f.options(log), func(a *app.App) {
		log.Info("serving", "url", a.URL(), "took", time.Since(started).Round(time.Millisecond))
	})
}

// endless is longer than a server runs.
const endless = 100 * 365 * 24 * time.Hour

// options are those of a server that keeps no files of its own.
func (f *apiServerFlags) options(log *slog.Logger) app.Options {
	if f.authentication.Anonymous == nil && f.authentication.ConfigFile == "" {
		everywhere := true
		f.authentication.Anonymous = &everywhere
	}
	f.serveFlags.gates.offer = f.gates.offer
	f.controllers = app.OwnControllers(os.Getenv(controllersVariable))
	if len(f.etcd.Servers) == 1 && etcddoor.Is(context.Background(), f.etcd.Servers[0]) {
		f.etcd = app.Etcd{}
	}
	o := f.serveFlags.options(log)
	o.Kubeconfig = "" // nobody expects a file where a kube-apiserver is started
	o.Version, o.StrictTransport = f.version.serve, f.strict
	o.MinWatch = time.Duration(f.minimum) * time.Second
	if f.minimum == 0 {
		o.MinWatch = endless
	}
	return o
}

// certificate finds the serving certificate in the directory, or makes it.
func (f *apiServerFlags) certificate() error {
	if f.certDir == "" || f.certFile != "" || f.keyFile != "" {
		return nil
	}
	f.certFile, f.keyFile = filepath.Join(f.certDir, "apiserver.crt"), filepath.Join(f.certDir, "apiserver.key")
	if exists(f.certFile) && exists(f.keyFile) {
		return nil
	}
	made, err := pki.Open("", pki.Hosts(f.bindAddress.String()))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.certDir, 0o755); err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	if err := atomicfile.Replace(f.keyFile, made.Serving().KeyPEM(), 0o600); err != nil {
		return err
	}
	return atomicfile.Replace(f.certFile, append(made.Serving().CertPEM(), made.CA()...), 0o644)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
