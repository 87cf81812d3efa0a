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

// Names in the kubeconfig.
const (
	clusterName = "anykind" // also that of the administrator's context
	markName    = "anykind" // extension that marks a file of Write
)

// Administrator is the administrator's name in the kubeconfig.
const Administrator = "anykind-admin"

// Credentials are the server and the credentials of a user.
type Credentials struct {
	User             string
	Server           string // URL
	CA               []byte // CAs, in PEM
	Certificate, Key []byte // of the user, in PEM
}

// Context returns the name of the user's context.
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

// Encode returns the kubeconfig of c alone.
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

// in returns a kubeconfig with the entries of c added or replaced.
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
		panic("kubeconfig: a kubeconfig that is not YAML: " + err.Error()) // it was YAML, or consists of maps and strings
	}
	return data
}

// set sets a field of the entry of that name in one of the lists of a kubeconfig.
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

// Write writes the kubeconfig to a file that only its owner can read. In a file of an earlier
// Write it keeps entries that were added since: a namespace, a second context, another user. It
// does not change a file of another program, and returns an error.
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

// CheckWritable returns the error that Write would return, as far as that is visible without
// writing.
func CheckWritable(path string) error {
	_, _, err := readOwn(path)
	return err
}

// readOwn reads a file that Write may replace. data is nil if the file is missing, and config if
// it is empty.
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

// ReadCluster reads the URL of the server and its CAs (PEM) from a file of Write.
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
