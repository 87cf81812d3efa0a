package kind

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidateDriverName validates the name of a CSI driver at c.
func ValidateDriverName(c *rule.Check, name string) {
	if name == "" {
		c.Required("")
		return
	}
	if len(name) > 63 {
		c.TooLong(63)
	}
	c.Invalids(name, validation.IsDNS1123Subdomain(strings.ToLower(name)))
}

// ValidateSignerName validates the name of a certificate signer at c: a domain, and a path of one
// segment.
func ValidateSignerName(c *rule.Check, name string) {
	if name == "" {
		c.Required("")
		return
	}
	domain, path, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(path, "/") {
		c.Invalid(name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		c.TooLong(validation.DNS1123SubdomainMaxLength)
	}
	firstWrongLabel(c, domain, validation.IsDNS1123Label)
	if !strings.Contains(domain, ".") {
		c.Invalid(domain, "should be a domain with at least two segments separated by dots")
	}
	firstWrongLabel(c, path, validation.IsDNS1123Subdomain)
	// The path has room for the name and namespace of an object.
	const max = 2*validation.DNS1123SubdomainMaxLength + validation.DNS1123LabelMaxLength + 2
	if len(name) > max {
		c.TooLong(max)
	}
}

func firstWrongLabel(c *rule.Check, segment string, check func(string) []string) {
	for label := range strings.SplitSeq(segment, ".") {
		details := check(label)
		for _, d := range details {
			c.Invalid(segment, fmt.Sprintf("validating label %q: %s", label, d))
		}
		if len(details) > 0 {
			return
		}
	}
}

// TrustBundleName returns the errors in the name of a ClusterTrustBundle with or without a signer.
// The name begins with that of the signer.
func TrustBundleName(name, signer string, prefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	begin := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, ok := strings.CutPrefix(name, begin)
	if !ok {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, begin)}
	}
	return apivalidation.NameIsDNSSubdomain(rest, prefix)
}

// SemanticVersion matches versions of semver.org, 2.0.0.
var SemanticVersion = rule.Pattern(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)
