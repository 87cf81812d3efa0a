package kubeconfig

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// A program is an exec credential plugin: it prints credentials.
type program struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Command    string   `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Env        []struct {
		Name  string `json:"name,omitempty"`
		Value string `json:"value,omitempty"`
	} `json:"env,omitempty"`
	InstallHint     string `json:"installHint,omitempty"`
	ProvideCluster  bool   `json:"provideClusterInfo,omitempty"`
	InteractiveMode string `json:"interactiveMode,omitempty"`
}

// Values of a program's configuration.
const (
	credentialGroup = "client.authentication.k8s.io/"
	credentialKind  = "ExecCredential"
	// clusterExtension is the name of the cluster's extension for exec plugins.
	clusterExtension = "client.authentication.k8s.io/exec"

	never       = "Never"
	ifAvailable = "IfAvailable"
	always      = "Always"
)

func (p *program) validate() error {
	switch {
	case !slices.Contains([]string{credentialGroup + "v1", credentialGroup + "v1beta1"}, p.APIVersion):
		return fmt.Errorf("kubeconfig: exec.apiVersion is %q: want %sv1 or %[2]sv1beta1", p.APIVersion, credentialGroup)
	case p.Command == "":
		return errors.New("kubeconfig: exec.command is empty")
	case p.InteractiveMode == "" && p.APIVersion == credentialGroup+"v1beta1":
		p.InteractiveMode = ifAvailable
	case !slices.Contains([]string{never, ifAvailable, always}, p.InteractiveMode):
		return fmt.Errorf("kubeconfig: exec.interactiveMode is %q: want %s, %s or %s", p.InteractiveMode, never, ifAvailable, always)
	}
	return nil
}

// An execCredential is the input and the output of a plugin.
type execCredential struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Interactive bool           `json:"interactive"`
		Cluster     map[string]any `json:"cluster,omitempty"`
	} `json:"spec"`
	Status *struct {
		Expires     *time.Time `json:"expirationTimestamp"`
		Token       string     `json:"token"`
		Certificate string     `json:"clientCertificateData"`
		Key         string     `json:"clientKeyData"`
	} `json:"status,omitempty"`
}

// A credential is the result of a plugin.
type credential struct {
	token       string
	certificate *tls.Certificate
	expires     time.Time // zero: never
}

// programCredentials caches the credentials of a plugin until they expire.
type programCredentials struct {
	program  program
	execInfo execCredential
	stdin    *os.File

	mu  sync.Mutex // also prevents parallel runs: the plugin may prompt
	now *credential
}

func newProgramCredentials(p *program, c *cluster) (*programCredentials, error) {
	s := &programCredentials{program: *p, stdin: os.Stdin}
	if err := s.program.validate(); err != nil {
		return nil, err
	}
	s.execInfo.APIVersion, s.execInfo.Kind = p.APIVersion, credentialKind
	if p.ProvideCluster {
		var err error
		s.execInfo.Spec.Cluster, err = c.execCluster()
		return s, err
	}
	return s, nil
}

// execCluster returns the cluster information for a plugin.
func (c *cluster) execCluster() (map[string]any, error) {
	ca, err := either(c.CA, c.CAFile)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"server": c.Server}
	for name, value := range map[string]string{"tls-server-name": c.TLSServerName, "proxy-url": c.Proxy} {
		if value != "" {
			out[name] = value
		}
	}
	for name, value := range map[string]bool{"insecure-skip-tls-verify": c.Insecure, "disable-compression": c.DisableCompression} {
		if value {
			out[name] = true
		}
	}
	if len(ca) > 0 {
		out["certificate-authority-data"] = ca
	}
	for _, e := range c.Extensions {
		if e.Name == clusterExtension {
			out["config"] = e.Extension
		}
	}
	return out, nil
}

// get returns credentials that are currently valid.
func (s *programCredentials) get(ctx context.Context) (*credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && (s.now.expires.IsZero() || time.Now().Before(s.now.expires)) {
		return s.now, nil
	}
	got, err := s.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: credentials of %s: %w", s.program.Command, err)
	}
	s.now = got
	return got, nil
}

// certificate returns the user's certificate for a TLS handshake.
func (s *programCredentials) certificate(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	given, err := s.get(r.Context())
	if err != nil {
		return nil, err
	}
	if given.certificate == nil {
		return &tls.Certificate{}, nil // no certificate
	}
	return given.certificate, nil
}

// refused drops credentials that a server rejected, so that the next request gets new ones.
func (s *programCredentials) refused(c *credential) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == c {
		s.now = nil
	}
}

// ask runs the plugin.
func (s *programCredentials) ask(ctx context.Context) (*credential, error) {
	input := s.execInfo
	terminal := isTerminal(s.stdin)
	if input.Spec.Interactive = terminal && s.program.InteractiveMode != never; !terminal && s.program.InteractiveMode == always {
		return nil, errors.New("interactiveMode is Always, but standard input is not a terminal")
	}
	info, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	var stdout bytes.Buffer
	run := exec.CommandContext(ctx, s.program.Command, s.program.Args...)
	run.Env = os.Environ()
	for _, e := range s.program.Env {
		run.Env = append(run.Env, e.Name+"="+e.Value)
	}
	run.Env = append(run.Env, "KUBERNETES_EXEC_INFO="+string(info))
	run.Stdout, run.Stderr = &stdout, os.Stderr
	if input.Spec.Interactive {
		run.Stdin = s.stdin
	}
	err = run.Run()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return nil, errors.New(strings.TrimSuffix("the command is not installed: "+s.program.InstallHint, ": "))
	}
	if err != nil {
		return nil, err
	}
	return s.read(stdout.Bytes())
}

// read parses the output of the plugin.
func (s *programCredentials) read(printed []byte) (*credential, error) {
	var got execCredential
	if err := json.Unmarshal(printed, &got); err != nil {
		return nil, fmt.Errorf("its output is no %s: %w", credentialKind, err)
	}
	switch {
	case got.APIVersion != s.execInfo.APIVersion || got.Kind != credentialKind:
		return nil, fmt.Errorf("its output is %q of %q, want %s of %s", got.Kind, got.APIVersion, credentialKind, s.execInfo.APIVersion)
	case got.Status == nil || got.Status.Token == "" && got.Status.Certificate == "" && got.Status.Key == "":
		return nil, errors.New("its output has neither a token nor a client certificate")
	}
	out := &credential{token: got.Status.Token}
	if got.Status.Expires != nil {
		out.expires = *got.Status.Expires
	}
	if got.Status.Certificate != "" || got.Status.Key != "" {
		pair, err := tls.X509KeyPair([]byte(got.Status.Certificate), []byte(got.Status.Key))
		if err != nil {
			return nil, fmt.Errorf("the client certificate of its output: %w", err)
		}
		out.certificate = &pair
	}
	return out, nil
}

// isTerminal reports whether a file is a terminal: a character device other than the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	nothing, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, nothing)
}
