package pki

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Names in a kubeconfig.
const (
	clusterName = "anykind" // and of the context
	userName    = "anykind-admin"
	markName    = "anykind" // of the extension that says whose the file is
)

// A Kubeconfig says how to reach a server as somebody.
type Kubeconfig struct {
	Server string // URL
	CA     []byte // certificates to trust, in PEM
	Client *Pair
}

// Kubeconfig returns how to reach this PKI's server as its administrator.
func (p *PKI) Kubeconfig(server string) Kubeconfig {
	return Kubeconfig{Server: server, CA: p.CA(), Client: p.admin}
}

// Trust returns certificates in PEM that make a client trust a server that shows
// cert.
func Trust(cert *tls.Certificate) []byte {
	var out bytes.Buffer
	for _, der := range cert.Certificate {
		// A bytes.Buffer takes everything.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return out.Bytes()
}

func (k Kubeconfig) cluster() map[string]any {
	return map[string]any{"server": k.Server, "certificate-authority-data": base64.StdEncoding.EncodeToString(k.CA)}
}

func (k Kubeconfig) user() map[string]any {
	return map[string]any{
		"client-certificate-data": base64.StdEncoding.EncodeToString(k.Client.CertPEM()),
		"client-key-data":         base64.StdEncoding.EncodeToString(k.Client.KeyPEM()),
	}
}

// Encode returns the kubeconfig as a file of its own.
func (k Kubeconfig) Encode() []byte {
	return k.in(map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"extensions": []any{map[string]any{
			"name":      markName,
			"extension": map[string]any{"description": "anykind keeps its cluster and user in this file up to date"},
		}},
	})
}

// in returns a kubeconfig with what k says in it, and all else as it was.
func (k Kubeconfig) in(config map[string]any) []byte {
	set(config, "clusters", clusterName, "cluster", k.cluster())
	set(config, "users", userName, "user", k.user())
	if find(config, "contexts", clusterName) == nil {
		set(config, "contexts", clusterName, "context", map[string]any{"cluster": clusterName, "user": userName})
	}
	if current, _ := config["current-context"].(string); current == "" {
		config["current-context"] = clusterName
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		panic("pki: a kubeconfig that is not YAML: " + err.Error()) // it was YAML, or is made of maps and strings
	}
	return data
}

// set puts value, in a field, into the entry of that name of one of the lists of
// a kubeconfig.
func set(config map[string]any, list, name, field string, value map[string]any) {
	if entry := find(config, list, name); entry != nil {
		entry[field] = value
		return
	}
	entries, _ := config[list].([]any)
	config[list] = append(entries, map[string]any{"name": name, field: value})
}

func find(config map[string]any, list, name string) map[string]any {
	entries, _ := config[list].([]any)
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok && entry["name"] == name {
			return entry
		}
	}
	return nil
}

// Write keeps the kubeconfig in a file that only its owner can read. A file that
// Write has made before keeps what others have put into it since: a namespace, a
// second context. A file of somebody else is an error and left as it is.
func (k Kubeconfig) Write(path string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	old, config, err := readOwn(path)
	if err != nil {
		return err
	}
	data := k.Encode()
	switch {
	case old == nil:
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	case config != nil:
		data = k.in(config)
	}
	if bytes.Equal(old, data) {
		return nil
	}
	if err := keepFile(path, data, 0o600); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

// CheckKubeconfig says why Write would not write to a path, as far as can be
// seen without writing.
func CheckKubeconfig(path string) error {
	_, _, err := readOwn(path)
	return err
}

// readOwn reads a file that Write may replace. data is nil if there is none, and
// config if it is empty.
func readOwn(path string) (data []byte, config map[string]any, err error) {
	data, err = os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("kubeconfig: %w", err)
	case len(bytes.TrimSpace(data)) == 0:
		return data, nil, nil
	}
	if err := yaml.Unmarshal(data, &config); err != nil || find(config, "extensions", markName) == nil {
		return nil, nil, fmt.Errorf("kubeconfig: %s was not written by anykind and is left as it is: name another file, or remove this one", path)
	}
	return data, config, nil
}
