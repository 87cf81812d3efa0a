package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func trustBundles() *resource.Definition {
	return kind.Kind[*certificatesv1.ClusterTrustBundle, *certificatesv1.ClusterTrustBundleList]{
		Definition: resource.Definition{
			Group: certificatesv1.GroupName, Plural: "clustertrustbundles", Gate: gate.ClusterTrustBundle,
			// The valid names depend on the signer: see validateBundle.
			Strategy: resource.Strategy{ValidateName: func(string, bool) []string { return nil }},
		},
		Validate: validateBundle,
		Columns:  `SignerName  string  .spec.signerName:<none>`,
		Select:   "spec.signerName",
	}.New(
		kind.Like[*certificatesv1beta1.ClusterTrustBundle, *certificatesv1beta1.ClusterTrustBundleList]("v1beta1").Stored(),
		kind.Renamed("v1alpha1", "k8s.io/api/certificates/v1alpha1", kind.Life{Introduced: 26, Deprecated: 34, Removed: 37}),
	)
}

func validateBundle(c *rule.Check, b, old *certificatesv1.ClusterTrustBundle) {
	signer := b.Spec.SignerName
	if b.GenerateName != "" {
		c.At("metadata", "generateName").Invalids(b.GenerateName, kind.TrustBundleName(b.GenerateName, signer, true))
	}
	if b.Name != "" {
		c.At("metadata", "name").Invalids(b.Name, kind.TrustBundleName(b.Name, signer, false))
	}
	at := c.At("spec", "signerName")
	if signer != "" {
		kind.ValidateSignerName(at, signer)
	}
	if old == nil || old.Spec.TrustBundle != b.Spec.TrustBundle {
		validateAnchors(c.At("spec", "trustBundle"), b.Spec.TrustBundle)
	}
	if old != nil && old.Spec.SignerName != signer {
		at.Invalid(signer, apivalidation.FieldImmutableErrorMsg)
	}
}

// validateAnchors checks that a text consists of CA certificates without duplicates.
func validateAnchors(c *rule.Check, text string) {
	const max = 1 << 20
	if len(text) > max {
		c.TooLong(max)
		return
	}
	wrong := func(format string, args ...any) { c.Invalid("<value omitted>", fmt.Sprintf(format, args...)) }
	var anchors []string
	places := map[string][]int{}
	valid := true
	block, rest := pem.Decode([]byte(text))
	for i := 0; block != nil; i++ {
		if problem := wrongWithAnchor(block); problem != "" {
			wrong("entry %d %s", i, problem)
			valid = false
		}
		if der := string(block.Bytes); !slices.Contains(anchors, der) {
			anchors = append(anchors, der)
		}
		places[string(block.Bytes)] = append(places[string(block.Bytes)], i)
		block, rest = pem.Decode(rest)
	}
	if !valid {
		return
	}
	if len(anchors) == 0 {
		wrong("at least one trust anchor must be provided")
	}
	for _, der := range anchors {
		if at := places[der]; len(at) > 1 {
			wrong("duplicate trust anchor (indices %v)", at)
		}
	}
}

func wrongWithAnchor(block *pem.Block) string {
	if block.Type != "CERTIFICATE" {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) != 0 {
		return "has PEM block headers"
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !cert.IsCA:
		return "does not have the CA bit set"
	case !cert.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}
