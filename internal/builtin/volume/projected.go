package volume

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// fileRules are the rules of sources whose files a node writes.
var fileRules = rule.All(
	rule.On(func(c *rule.Check, s *corev1.EmptyDirVolumeSource) {
		if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
			c.At("sizeLimit").Forbidden("SizeLimit field must be a valid resource quantity")
		}
		if s.Mode != nil && (*s.Mode < 0 || *s.Mode > 0o1777) {
			c.At("mode").Invalid(*s.Mode, "must be a number between 0 and 01777 (octal), both inclusive")
		}
	}),
	rule.On(func(c *rule.Check, s *corev1.DownwardAPIVolumeSource) {
		for i := range s.Items {
			c.Walk(&s.Items[i]) // errors do not name the item
		}
	}),
	rule.On(func(c *rule.Check, s *corev1.DownwardAPIProjection) {
		for i := range s.Items {
			c.Walk(&s.Items[i])
		}
	}),
	rule.On(validateDownwardFile),
	rule.On(validateProjected),
	rule.On(validateTrustBundle),
	rule.On(validatePodCertificate),
	rule.On(func(c *rule.Check, s *corev1.ImageVolumeSource) {
		if s.Reference == "" && !rule.Given[given](c).emptyImages {
			c.At("reference").Required("")
		}
	}),
)

func validateDownwardFile(c *rule.Check, f *corev1.DownwardAPIVolumeFile) {
	switch {
	case f.FieldRef != nil:
		ValidateFieldRef(c.At("fieldRef"), f.FieldRef,
			"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
		if f.ResourceFieldRef != nil {
			c.Invalid("resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case f.ResourceFieldRef != nil:
		ValidateResourceRef(c.At("resourceFieldRef"), f.ResourceFieldRef, true)
	default:
		c.Required("one of fieldRef and resourceFieldRef is required")
	}
}

// validateProjected checks that each source of a projected volume is one source, and that no two
// write the same file.
func validateProjected(c *rule.Check, p *corev1.ProjectedVolumeSource) {
	written := map[string]bool{}
	write := func(path, told string) {
		if written[path] {
			c.Invalid(told, "conflicting duplicate paths")
		}
		written[path] = true
	}
	for i := range p.Sources {
		n := 0
		for _, f := range filesOf(&p.Sources[i]) {
			if f.first {
				n++
			}
			if f.path != "" || f.always {
				write(f.path, f.told)
			}
		}
		if n > 1 {
			c.At("sources", i).Forbidden("may not specify more than 1 volume type per source")
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			validateToken(c, c.At("sources", i, "serviceAccountToken"), t)
		}
	}
}

// A file is a file that a source writes. An error names the path, or the object.
type file struct {
	path, told string
	first      bool // begins another source
	always     bool // exists even without a path
}

func filesOf(s *corev1.VolumeProjection) (files []file) {
	items := func(name string, items []corev1.KeyToPath) {
		files = append(files, file{first: true})
		for _, i := range items {
			files = append(files, file{path: i.Path, told: name})
		}
	}
	if s.Secret != nil {
		items(s.Secret.Name, s.Secret.Items)
	}
	if s.ConfigMap != nil {
		items(s.ConfigMap.Name, s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		files = append(files, file{first: true})
		for _, i := range s.DownwardAPI.Items {
			files = append(files, file{path: i.Path, told: i.Path})
		}
	}
	if s.ServiceAccountToken != nil {
		files = append(files, file{first: true})
	}
	if b := s.ClusterTrustBundle; b != nil {
		files = append(files, file{path: b.Path, told: b.Path, first: true, always: true})
	}
	if p := s.PodCertificate; p != nil {
		files = append(files, file{first: true})
		for _, path := range []string{p.CredentialBundlePath, p.KeyPath, p.CertificateChainPath} {
			files = append(files, file{path: path, told: path})
		}
	}
	return files
}

// validateToken validates a token source. Errors of its path name the volume, the place of all.
func validateToken(all, c *rule.Check, t *corev1.ServiceAccountTokenProjection) {
	switch at := c.At("expirationSeconds"); {
	case t.ExpirationSeconds == nil:
		at.Required("")
	case *t.ExpirationSeconds < 10*60:
		at.Invalid(*t.ExpirationSeconds, "may not specify a duration less than 10 minutes")
	case *t.ExpirationSeconds > 1<<32:
		at.Invalid(*t.ExpirationSeconds, "may not specify a duration larger than 2^32 seconds")
	}
	all = all.At("path")
	if t.Path == "" {
		all.Required("")
	} else if !rule.Given[given](c).tokenPaths {
		all.Invalids(t.Path, rule.PathBelow(t.Path))
	}
}

func validateTrustBundle(c *rule.Check, s *corev1.ClusterTrustBundleProjection) {
	switch {
	case s.Name != nil && s.SignerName != nil:
		c.Invalid(s, "only one of name and signerName may be used")
	case s.Name != nil:
		validateTrustBundleName(c.At("name"), *s.Name)
		if s.LabelSelector != nil {
			c.At("labelSelector").Invalid(s.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case s.SignerName != nil:
		if *s.SignerName == "" {
			c.At("signerName").Required("must be a valid signer name")
		}
		kind.ValidateSignerName(c.At("signerName"), *s.SignerName)
		c.Add(metavalidation.ValidateLabelSelector(s.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, c.At("labelSelector").Path())...)
	default:
		c.Required("either name or signerName must be specified")
	}
}

func validateTrustBundleName(c *rule.Check, name string) {
	if name == "" {
		c.Required("must be a valid object name")
	}
	signer := ""
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		signer = strings.ReplaceAll(name[:i], ":", "/")
	}
	for _, detail := range kind.TrustBundleName(name, signer, false) {
		c.Invalid(name, "not a valid clustertrustbundlename: "+detail)
	}
}

var keyTypes = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

func validatePodCertificate(c *rule.Check, s *corev1.PodCertificateProjection) {
	kind.ValidateSignerName(c.At("signerName"), s.SignerName)
	at := c.At("userAnnotations")
	for _, key := range kind.SortedKeys(s.UserAnnotations) {
		c.Add(validation.IsDomainPrefixedKey(at.Path(), strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(s.UserAnnotations) != nil {
		at.TooLong(apivalidation.TotalAnnotationSizeLimitB)
	}
	if !slices.Contains(keyTypes, s.KeyType) {
		rule.NotSupported(c.At("keyType"), s.KeyType, keyTypes...)
	}
	if s.MaxExpirationSeconds != nil {
		validateMaxExpiration(c.At("maxExpirationSeconds"), *s.MaxExpirationSeconds, s.SignerName)
	}
	if s.CredentialBundlePath == "" && s.KeyPath == "" && s.CertificateChainPath == "" {
		c.Required("specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
	}
}

// validateMaxExpiration limits the lifetime of a certificate.
func validateMaxExpiration(c *rule.Check, seconds int32, signer string) {
	const least, hours = 60 * 60, 24
	most := int32(91 * hours * least)
	if domain, _, _ := strings.Cut(signer, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		most = hours * least
	}
	if seconds < least {
		c.Invalid(seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", least))
	}
	if seconds > most {
		c.Invalid(seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most))
	}
}
