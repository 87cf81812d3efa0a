// Package certificates has the built-in kinds of certificates.k8s.io: requests for
// certificates, and bundles of those to trust.
//
// It knows what one may say. Controllers sign the certificates.
package certificates

import (
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{signingRequests(), trustBundles(), podRequests()}
}
