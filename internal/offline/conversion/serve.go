package conversion

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/network/pki"
)

// Serving configures a webhook that converts by the rules in files.
type Serving struct {
	// Read reads the definitions with their rules, and State returns a text that changes with the files.
	Read  func() ([]*v1.CustomResourceDefinition, error)
	State func() string

	Address net.IP
	Port    int
	// CertFile and KeyFile are the serving certificate. Without them, one is created for Hosts and kept in
	// CertDir, if that is set.
	CertFile, KeyFile, CertDir string
	Hosts                      []string
	Log                        *slog.Logger
	// Out gets the patches with which definitions use the webhook.
	Out io.Writer
}

const (
	// rereadAfter is the interval between checks of the files.
	rereadAfter = 2 * time.Second
	// drainTime limits requests in progress at the end.
	drainTime = 30 * time.Second
)

// Run serves until ctx ends.
func (s *Serving) Run(ctx context.Context) error {
	definitions, err := s.read()
	if err != nil {
		return err
	}
	if len(definitions.WithRules()) == 0 {
		return fmt.Errorf("there are no conversion rules in the files")
	}
	for _, w := range definitions.Warnings() {
		s.Log.Warn(w)
	}
	certificate, ca, err := s.certificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(s.Address.String(), strconv.Itoa(s.Port)))
	if err != nil {
		return err
	}
	var present atomic.Pointer[Definitions]
	present.Store(definitions)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.reread(ctx, &present)
	server := &http.Server{
		Handler:           &Webhook{Definitions: present.Load},
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	drained := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(drained)
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	s.greet(listener.Addr(), ca, definitions)
	err = server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate, NextProtos: []string{"h2", "http/1.1"}}))
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-drained
	return nil
}

func (s *Serving) read() (*Definitions, error) {
	all, err := s.Read()
	if err != nil {
		return nil, err
	}
	return New(all)
}

// certificate returns the serving certificate, and the CA of one that was created.
func (s *Serving) certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), []byte, error) {
	if s.CertFile != "" {
		loaded, err := pki.LoadCertificate(s.CertFile, s.KeyFile, s.Log)
		if err != nil {
			return nil, nil, err
		}
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return loaded.Get(), nil }, nil, nil
	}
	made, err := pki.Open(s.CertDir, append(slices.Clone(s.Hosts), pki.Hosts(s.Address.String())...))
	if err != nil {
		return nil, nil, err
	}
	return made.GetCertificate, made.CA(), nil
}

// greet prints how definitions use the webhook.
func (s *Serving) greet(at net.Addr, ca []byte, definitions *Definitions) {
	host := "localhost"
	switch {
	case len(s.Hosts) > 0:
		host = s.Hosts[0]
	case !s.Address.IsUnspecified():
		host = s.Address.String()
	}
	_, port, _ := net.SplitHostPort(at.String())
	url := "https://" + net.JoinHostPort(host, port) + "/convert"
	for _, d := range definitions.WithRules() {
		fmt.Fprintf(s.Out, "kubectl patch crd %s --type merge -p '%s'\n", d.Name, Patch(url, ca))
	}
	fmt.Fprintf(s.Out, "the conversion webhook listens on %s\n", at)
}

// reread reads changed files until ctx ends.
func (s *Serving) reread(ctx context.Context, present *atomic.Pointer[Definitions]) {
	last, failed := s.State(), ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rereadAfter):
		}
		now := s.State()
		if now == last && failed == "" {
			continue
		}
		next, err := s.read()
		switch {
		case err == nil:
			present.Store(next)
			last, failed = now, ""
			s.Log.Info("changed rules are in effect")
		case err.Error() != failed:
			failed = err.Error()
			s.Log.Error("changed rules are not valid; the previous ones stay in effect", "error", err)
		}
	}
}
