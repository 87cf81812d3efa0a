// Package published names the Go modules whose CustomResourceDefinitions tests read.
//
// Tests need only the YAML files in the modules. From each module the package imports a package
// without imports, so go.mod requires just two modules and go.sum has their checksums. A module of its
// own keeps their requirements away from the builds of the tests.
package published

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
