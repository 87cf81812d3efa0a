// Package kubeconfig reads and writes kubeconfig files: clusters, users and contexts.
//
// Find decides how to reach a server, as kubectl does, from flags and from these files.
// Credentials writes the kubeconfig of a user of an anykind server. The package
// knows the files, and what an HTTP client needs of them. It runs no programs to get
// credentials, and makes no certificates.
package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Options say which files to read, and what to put in the place of what is in them.
// All may be left out.
type Options struct {
	// Files, of which the first that says something about a name is right. If there
	// are none, those of KUBECONFIG are read, or else .kube/config of the user.
	Files   []string
	Context string // the current one if empty

	Server   string // URL
	CAFile   string
	Insecure bool // believe any certificate
	Token    string
}

// file is what is read of one file.
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
	Server        string `json:"server"`
	CAFile        string `json:"certificate-authority"`
	CA            []byte `json:"certificate-authority-data"`
	Insecure      bool   `json:"insecure-skip-tls-verify"`
	TLSServerName string `json:"tls-server-name"`
	Proxy         string `json:"proxy-url"`
}

type user struct {
	CertificateFile string `json:"client-certificate"`
	Certificate     []byte `json:"client-certificate-data"`
	KeyFile         string `json:"client-key"`
	Key             []byte `json:"client-key-data"`
	Token           string `json:"token"`
	TokenFile       string `json:"tokenFile"`
	Username        string `json:"username"`
	Password        string `json:"password"`
	Exec            any    `json:"exec"`
	Provider        any    `json:"auth-provider"`
}

// A pair is a context: somebody at some server.
type pair struct {
	Cluster string `json:"cluster"`
	User    string `json:"user"`
}

// known is what all files say together.
type known struct {
	clusters map[string]cluster
	users    map[string]user
	contexts map[string]pair
	current  string
}

// Find returns how to reach the server that the options mean.
func Find(o Options) (*Config, error) {
	k, err := read(o)
	if err != nil {
		return nil, err
	}
	name := k.current
	if o.Context != "" {
		name = o.Context
	}
	var c cluster
	var u user
	if name != "" {
		of, ok := k.contexts[name]
		if !ok {
			return nil, fmt.Errorf("kubeconfig: there is no context %q", name)
		}
		if c, ok = k.clusters[of.Cluster]; !ok {
			return nil, fmt.Errorf("kubeconfig: there is no cluster %q, which the context %q names", of.Cluster, name)
		}
		u = k.users[of.User] // who has no credentials is nobody
	}
	if o.Server != "" {
		c.Server = o.Server
	}
	if o.CAFile != "" {
		c.CAFile, c.CA, c.Insecure = o.CAFile, nil, false
	}
	if o.Insecure {
		c.CAFile, c.CA, c.Insecure = "", nil, true
	}
	if o.Token != "" {
		u = user{Token: o.Token}
	}
	if c.Server == "" {
		return nil, errors.New("no server is named: set KUBECONFIG, or say --kubeconfig or --server")
	}
	return newConfig(&c, &u)
}

// read reads all files. One that was asked for must be there.
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
		k.add(&f, filepath.Dir(name))
	}
	return k, nil
}

// add adds what a file says of names that no file before it has. File names in it
// are meant from its folder.
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
