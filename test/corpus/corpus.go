// Package corpus returns CustomResourceDefinitions, and objects of them, for tests and benchmarks that
// need realistic ones.
//
// The Gateway API and cert-manager publish theirs in Go modules. test/operators/published requires
// these modules, and the go command downloads and verifies them on first use. Definitions of cloud
// providers are not available as Go modules, so package crdtest generates similar ones. The package knows
// the files of all of them, and not their use.
package corpus

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema/crd/crdtest"
	"github.com/anykind/anykind/test/program"
)

// A Folder is a folder of a published module, with YAML files in it and its subfolders.
type Folder struct{ module, path string }

const (
	gatewayAPI  = "sigs.k8s.io/gateway-api"
	certManager = "github.com/cert-manager/cert-manager"
)

// Both channels of the Gateway API have definitions of the same names; the experimental ones have more
// fields.
var (
	GatewayAPIExperimental = Folder{gatewayAPI, "config/crd/experimental"}
	GatewayAPIStandard     = Folder{gatewayAPI, "config/crd/standard"}
	GatewayAPIValid        = Folder{gatewayAPI, "examples"}
	GatewayAPIInvalid      = Folder{gatewayAPI, "hack/invalid-examples"}
	CertManager            = Folder{certManager, "deploy/crds"}
)

// Definitions returns one definition of each name: those of the experimental channel of the Gateway
// API, of cert-manager, and of a provider.
func Definitions() ([]map[string]any, error) {
	var all []map[string]any
	for _, f := range []Folder{GatewayAPIExperimental, CertManager} {
		published, err := f.Definitions()
		if err != nil {
			return nil, err
		}
		all = append(all, published...)
	}
	return append(all, crdtest.Provider()...), nil
}

// Definitions returns the definitions in a folder.
func (f Folder) Definitions() (all []map[string]any, err error) {
	err = f.Documents(func(file, document string) error {
		if !strings.Contains(document, "\nkind: CustomResourceDefinition") {
			return nil
		}
		var definition map[string]any
		if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, definition)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no definition in %s of %s", f.path, f.module)
	}
	return all, err
}

// Documents calls visit for each YAML document of a folder, with the name of its file.
func (f Folder) Documents(visit func(file, document string) error) error {
	published, err := modules()
	if err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(published[f.module].Dir, filepath.FromSlash(f.path)), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq("\n"+string(data), "\n---") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			if err := visit(file, document); err != nil {
				return err
			}
		}
		return nil
	})
}

// modules returns the published modules.
var modules = sync.OnceValues(func() (map[string]program.Module, error) {
	return program.Published("test/operators/published", gatewayAPI, certManager)
})
