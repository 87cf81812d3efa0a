// Package certificates has the built-in kinds of certificates.k8s.io: requests for
// certificates, and bundles of those to trust.
//
// It knows what one may say. Controllers sign the certificates.
package certificates

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group, whose certificates are counted in metrics.
func Definitions(m *Metrics) []*resource.Definition {
	return []*resource.Definition{signingRequests(m), trustBundles(), podRequests()}
}
