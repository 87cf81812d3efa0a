// Package published names the Go modules whose CustomResourceDefinitions tests read.
//
// Tests need only the YAML files in the modules. Of each module the package imports a package
// without imports, so go.mod requires just two modules and go.sum has their checksums. It is a
// module of its own, so the requirements of these two do not change the versions that tests are
// built with.
package published

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
