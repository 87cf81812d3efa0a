package certificates

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func trustBundles() *resource.Definition {
	return kind.Kind[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList]{
		Definition: resource.Definition{
			Group: certificatesv1.GroupName, Plural: "clustertrustbundles",
			StoredAs: schema.GroupVersionKind{Group: certificatesv1.GroupName, Version: "v1beta1", Kind: "ClusterTrustBundle"},
		},
		Columns: `SignerName  string  .spec.signerName:<none>`,
		Select:  "spec.signerName",
	}.New()
}
