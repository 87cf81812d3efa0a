package kubeconfig

import (
	"errors"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Below returns a kubeconfig with one context of a name: the server and the user that the options select, with
// a path after the URL of the server. It needs no other kubeconfig.
func Below(o Options, name, path string) ([]byte, error) {
	k, err := read(o)
	if err != nil {
		return nil, err
	}
	if k.empty(&o) {
		return nil, errors.New("no kubeconfig with the credentials: set KUBECONFIG or --kubeconfig")
	}
	c, u, err := k.choose(&o)
	if err != nil {
		return nil, err
	}
	o.override(&c, &u)
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	from(here, &c.CAFile, &u.CertificateFile, &u.KeyFile) // of the options; names in files are absolute
	c.Server = strings.TrimRight(c.Server, "/") + path
	entry := func(kind string, value any) []any { return []any{map[string]any{"name": name, kind: value}} }
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": entry("cluster", c),
		"users":    entry("user", u),
		"contexts": entry("context", pair{Cluster: name, User: name, Namespace: k.contexts[k.chosen(&o)].Namespace}),
	})
}
