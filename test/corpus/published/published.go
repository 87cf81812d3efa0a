// Package published names the Go modules whose CustomResourceDefinitions tests read.
//
// Their YAML is what is wanted, and it is in the modules as they are published. The
// package imports of each what imports nothing else, so that go.mod requires two
// modules and go.sum has their checksums. It is a module of its own: what these two
// require has no say in the versions that the tests are built with.
package published

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "sigs.k8s.io/gateway-api/pkg/consts"
)
