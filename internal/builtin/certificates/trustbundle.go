package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func trustBundles() *resource.Definition {
	return kind.Kind[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList]{
		Definition: resource.Definition{Group: certificatesv1.GroupName, Plural: "clustertrustbundles"},
		Columns:    `SignerName  string  .spec.signerName:<none>`,
		Select:     "spec.signerName",
	}.New()
}
