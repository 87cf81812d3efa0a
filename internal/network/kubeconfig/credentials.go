package kubeconfig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/store/atomicfile"
)

// Names in the files.
const (
	clusterName = "anykind" // and of the administrator's context
	markName    = "anykind" // of the extension that says whose the file is
)

// Administrator is the name of the administrator in the files.
const Administrator = "anykind-admin"

// Credentials are how to reach a server as a user.
type Credentials struct {
	User             string
	Server           string // URL
	CA               []byte // certificates to trust, in PEM
	Certificate, Key []byte // of the user, in PEM
}

// Context is the name of the context in which a client is the user.
func (c Credentials) Context() string {
	if c.User == Administrator {
		return clusterName
	}
	return c.User + "@" + clusterName
}

func (c Credentials) cluster() map[string]any {
	return map[string]any{"server": c.Server, "certificate-authority-data": base64.StdEncoding.EncodeToString(c.CA)}
}

func (c Credentials) user() map[string]any {
	return map[string]any{
		"client-certificate-data": base64.StdEncoding.EncodeToString(c.Certificate),
		"client-key-data":         base64.StdEncoding.EncodeToString(c.Key),
	}
}

// Encode returns the kubeconfig as a file of its own.
func (c Credentials) Encode() []byte {
	return c.in(map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"extensions": []any{map[string]any{
			"name":      markName,
			"extension": map[string]any{"description": "anykind keeps its cluster and user in this file up to date"},
		}},
	})
}

// in returns a kubeconfig with what c says in it, and all else as it was.
func (c Credentials) in(config map[string]any) []byte {
	set(config, "clusters", clusterName, "cluster", c.cluster())
	set(config, "users", c.User, "user", c.user())
	if find(config, "contexts", c.Context()) == nil {
		set(config, "contexts", c.Context(), "context", map[string]any{"cluster": clusterName, "user": c.User})
	}
	if current, _ := config["current-context"].(string); current == "" {
		config["current-context"] = c.Context()
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		panic("kubeconfig: a kubeconfig that is not YAML: " + err.Error()) // it was YAML, or is made of maps and strings
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

// Write writes the kubeconfig to a file that only its owner can read. A file that an
// earlier Write made keeps what others have put into it since: a namespace, a second
// context, another user. A file of somebody else is an error and is left alone.
func (c Credentials) Write(path string) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	old, config, err := readOwn(path)
	if err != nil {
		return err
	}
	data := c.Encode()
	switch {
	case old == nil:
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	case config != nil:
		data = c.in(config)
	}
	if bytes.Equal(old, data) {
		return nil
	}
	if err := atomicfile.Replace(path, data, 0o600); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

// CheckWritable says why Write would not write to a path, as far as can be seen
// without writing.
func CheckWritable(path string) error {
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
		return nil, nil, fmt.Errorf("kubeconfig: anykind did not write %s and does not replace it: name another file, or remove it", path)
	}
	return data, config, nil
}

// ReadCluster reads from a file that Write made where the server is, and the certificates
// to trust, in PEM.
func ReadCluster(path string) (server string, ca []byte, err error) {
	k, err := read(Options{Files: []string{path}})
	if err != nil {
		return "", nil, err
	}
	c, ok := k.clusters[clusterName]
	if !ok || c.Server == "" {
		return "", nil, fmt.Errorf("kubeconfig: %s has no cluster %q: anykind did not write it", path, clusterName)
	}
	return c.Server, c.CA, nil
}
