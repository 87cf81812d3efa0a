// Package certificates has the built-in kinds of certificates.k8s.io: certificate requests and
// trust bundles.
//
// It validates them. Controllers sign the certificates.
package certificates

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group. They count certificates in m.
func Definitions(m *Metrics) []*resource.Definition {
	return []*resource.Definition{signingRequests(m), trustBundles(), podRequests()}
}
