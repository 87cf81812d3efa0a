// Package kubeconfig reads and writes kubeconfig files: clusters, users and contexts.
//
// Find chooses the server and the user from flags and kubeconfig files, as kubectl does.
// Credentials writes the kubeconfig of a user of an anykind server. The package knows the files
// and configures HTTP clients from them. It runs exec credential plugins; it creates no
// certificates.
package kubeconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Options select kubeconfig files, and override their content. All are optional.
type Options struct {
	// Files to read; the first that has an entry wins. By default those of KUBECONFIG, else
	// .kube/config of the user.
	Files   []string
	Context string // the current one if empty
	// Cluster and User are names in the files, and override those of the context.
	Cluster, User string

	Server             string // URL
	TLSServerName      string
	CAFile             string
	Insecure           bool   // accept any certificate
	Proxy              string // URL
	DisableCompression bool

	Token                    string
	CertificateFile, KeyFile string

	// As and AsUID are the user to impersonate.
	As, AsUID string
	AsGroups  []string
	AsExtra   map[string][]string

	Timeout time.Duration // of one request; none if zero
}

// A file is the content of one kubeconfig file.
type file struct {
	Clusters []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
	Contexts []struct {
		Name    string `json:"name"`
		Context pair   `json:"context"`
	} `json:"contexts"`
	CurrentContext string `json:"current-context"`
}

type cluster struct {
	Server             string `json:"server,omitempty"`
	CAFile             string `json:"certificate-authority,omitempty"`
	CA                 []byte `json:"certificate-authority-data,omitempty"`
	Insecure           bool   `json:"insecure-skip-tls-verify,omitempty"`
	TLSServerName      string `json:"tls-server-name,omitempty"`
	Proxy              string `json:"proxy-url,omitempty"`
	DisableCompression bool   `json:"disable-compression,omitempty"`
	Extensions         []struct {
		Name      string          `json:"name,omitempty"`
		Extension json.RawMessage `json:"extension,omitempty"`
	} `json:"extensions,omitempty"`
}

type user struct {
	CertificateFile string   `json:"client-certificate,omitempty"`
	Certificate     []byte   `json:"client-certificate-data,omitempty"`
	KeyFile         string   `json:"client-key,omitempty"`
	Key             []byte   `json:"client-key-data,omitempty"`
	Token           string   `json:"token,omitempty"`
	TokenFile       string   `json:"tokenFile,omitempty"`
	Username        string   `json:"username,omitempty"`
	Password        string   `json:"password,omitempty"`
	Exec            *program `json:"exec,omitempty"`
	Provider        any      `json:"auth-provider,omitempty"`

	As       string              `json:"as,omitempty"`
	AsUID    string              `json:"as-uid,omitempty"`
	AsGroups []string            `json:"as-groups,omitempty"`
	AsExtra  map[string][]string `json:"as-user-extra,omitempty"`
}

// A pair is a context: a user at a server.
type pair struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace,omitempty"`
}

// known is the merged content of all files.
type known struct {
	clusters map[string]cluster
	users    map[string]user
	contexts map[string]pair
	current  string
}

// Find returns the server and the user that the options select. If neither options nor files name
// a server, it returns the in-cluster configuration of a pod.
func Find(o Options) (*Config, error) {
	k, err := read(o)
	if err != nil {
		return nil, err
	}
	c, u, err := k.choose(&o)
	if err != nil {
		return nil, err
	}
	if k.empty(&o) {
		if in, user, err := inCluster(serviceAccountFolder); err == nil {
			c, u = in, user
		}
	}
	if o.override(&c, &u); c.Server == "" {
		return nil, errors.New("no server: set KUBECONFIG, --kubeconfig or --server")
	}
	config, err := newConfig(&c, &u)
	if err != nil {
		return nil, err
	}
	config.timeout, config.Namespace = o.Timeout, k.namespace(&o)
	return config, nil
}

// chosen returns the name of the context.
func (k *known) chosen(o *Options) string { return cmp.Or(o.Context, k.current) }

// namespace returns the namespace of the context, or else of the pod, or else default.
func (k *known) namespace(o *Options) string {
	of := k.contexts[k.chosen(o)]
	if of.Namespace == "" && k.empty(o) {
		data, _ := os.ReadFile(filepath.Join(serviceAccountFolder, "namespace")) // none outside of a pod
		of.Namespace = strings.TrimSpace(string(data))
	}
	return cmp.Or(of.Namespace, "default")
}

// empty reports whether neither options nor files name a server.
func (k *known) empty(o *Options) bool {
	return len(o.Files) == 0 && o.Server == "" && len(k.clusters) == 0 && k.current == ""
}

// choose returns the cluster and the user of the context, or those of the options.
func (k *known) choose(o *Options) (c cluster, u user, err error) {
	name := k.current
	replace(&name, o.Context)
	of, ok := k.contexts[name]
	if name != "" && !ok {
		return c, u, fmt.Errorf("kubeconfig: no context %q", name)
	}
	if c, ok = k.clusters[of.Cluster]; name != "" && o.Cluster == "" && !ok {
		return c, u, fmt.Errorf("kubeconfig: context %q: no cluster %q", name, of.Cluster)
	}
	u = k.users[of.User] // without credentials the user is anonymous
	if o.Cluster != "" {
		if c, ok = k.clusters[o.Cluster]; !ok {
			return c, u, fmt.Errorf("kubeconfig: no cluster %q", o.Cluster)
		}
	}
	if o.User != "" {
		if u, ok = k.users[o.User]; !ok {
			return c, u, fmt.Errorf("kubeconfig: no user %q", o.User)
		}
	}
	return c, u, nil
}

// Names are the names in kubeconfig files, for shell completion.
type Names struct{ Contexts, Clusters, Users []string }

// Known returns the names in the files of the options, sorted.
func Known(o Options) (Names, error) {
	k, err := read(o)
	if err != nil {
		return Names{}, err
	}
	return Names{slices.Sorted(maps.Keys(k.contexts)), slices.Sorted(maps.Keys(k.clusters)), slices.Sorted(maps.Keys(k.users))}, nil
}

// Current returns the name of the context that the options select, empty for none.
func Current(o Options) string {
	k, err := read(o)
	if err != nil {
		return o.Context
	}
	return k.chosen(&o)
}

// read reads all files. A file that the options name must exist.
func read(o Options) (*known, error) {
	k := &known{clusters: map[string]cluster{}, users: map[string]user{}, contexts: map[string]pair{}}
	names, must := o.Files, true
	if len(names) == 0 {
		names, must = filepath.SplitList(os.Getenv("KUBECONFIG")), false
	}
	if len(names) == 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return k, nil
		}
		names = []string{filepath.Join(home, ".kube", "config")}
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && (!must || name == "") {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		var f file
		if err := yaml.Unmarshal(data, &f); err != nil {
			return nil, fmt.Errorf("kubeconfig: %s: %w", name, err)
		}
		folder, err := filepath.Abs(filepath.Dir(name))
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		k.add(&f, folder)
	}
	return k, nil
}

// add adds the entries of a file whose names no earlier file has. Relative paths in it start at
// its folder. The folder is absolute.
func (k *known) add(f *file, folder string) {
	for _, c := range f.Clusters {
		if _, ok := k.clusters[c.Name]; !ok {
			from(folder, &c.Cluster.CAFile)
			k.clusters[c.Name] = c.Cluster
		}
	}
	for _, u := range f.Users {
		if _, ok := k.users[u.Name]; !ok {
			from(folder, &u.User.CertificateFile, &u.User.KeyFile, &u.User.TokenFile)
			if p := u.User.Exec; p != nil && strings.ContainsRune(p.Command, filepath.Separator) { // else it is looked up in PATH
				from(folder, &p.Command)
			}
			k.users[u.Name] = u.User
		}
	}
	for _, c := range f.Contexts {
		if _, ok := k.contexts[c.Name]; !ok {
			k.contexts[c.Name] = c.Context
		}
	}
	if k.current == "" {
		k.current = f.CurrentContext
	}
}

func from(folder string, names ...*string) {
	for _, name := range names {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(folder, *name)
		}
	}
}
