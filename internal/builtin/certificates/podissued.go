package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// outcomes are the final conditions. A request gets one of them.
var outcomes = []string{
	certificatesv1beta1.PodCertificateRequestConditionTypeIssued,
	certificatesv1beta1.PodCertificateRequestConditionTypeDenied,
	certificatesv1beta1.PodCertificateRequestConditionTypeFailed,
}

// validateIssued validates a status. It is written once, with the final condition.
func validateIssued(c *rule.Check, r, old *certificatesv1beta1.PodCertificateRequest) {
	validateOutcome(c, r.Status.Conditions)
	if len(c.Errors()) > 0 {
		return
	}
	only := func(status certificatesv1beta1.PodCertificateRequestStatus, detail string) {
		if !equality.Semantic.DeepEqual(r.Status, status) {
			c.At("status").Invalid(field.OmitValueType{}, detail)
		}
	}
	is := outcomeOf(r)
	switch {
	case outcomeOf(old) != "":
		only(old.Status, "immutable after PodCertificateRequest is issued, denied, or failed")
	case is == "":
		only(old.Status, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case is == certificatesv1beta1.PodCertificateRequestConditionTypeIssued:
		validateCertificates(c, r)
	default:
		only(certificatesv1beta1.PodCertificateRequestStatus{Conditions: r.Status.Conditions},
			"non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	}
}

func outcomeOf(r *certificatesv1beta1.PodCertificateRequest) string {
	for _, of := range outcomes {
		for _, c := range r.Status.Conditions {
			if c.Type == of && c.Status == metav1.ConditionTrue {
				return of
			}
		}
	}
	return ""
}

func validateOutcome(c *rule.Check, conditions []metav1.Condition) {
	known := 0
	for i, condition := range conditions {
		// As in Kubernetes, these paths have a dot before the index.
		at := field.NewPath("status", "conditions", "["+strconv.Itoa(i)+"]")
		switch condition.Type {
		case outcomes[0], outcomes[1], outcomes[2]:
			known++
			if known > 1 {
				c.Add(field.Invalid(at.Child("type"), condition.Type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`))
			}
			if condition.Status != metav1.ConditionTrue {
				c.Add(field.NotSupported(at.Child("status"), condition.Status, []metav1.ConditionStatus{metav1.ConditionTrue}))
			}
		default:
			c.Add(field.NotSupported(at.Child("type"), condition.Type, outcomes))
		}
	}
	c.At("status", "conditions").Conditions(conditions)
}

// validateCertificates validates a chain of certificates. The first one must match the request and
// the status.
func validateCertificates(c *rule.Check, r *certificatesv1beta1.PodCertificateRequest) {
	const max = 100 * 1024
	chain, text := c.At("status", "certificateChain"), r.Status.CertificateChain
	if len(text) > max {
		chain.TooLong(max)
		return
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil {
		chain.Invalid(text, "issued certificate chain must contain at least one certificate")
		return
	}
	if block.Type != "CERTIFICATE" {
		chain.Invalid(text, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
		return
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		chain.Invalid(text, "leaf certificate does not parse as valid X.509")
		return
	}
	validateNames(chain, leaf)
	key, ok := keyOf(c.At("spec"), &r.Spec)
	if !ok {
		return
	}
	if key, ok := key.(interface{ Equal(crypto.PublicKey) bool }); ok && !key.Equal(leaf.PublicKey) {
		chain.Invalid(text, "leaf certificate was not issued to the requested public key")
		return
	}
	if validateTimes(c.At("status"), r, leaf) {
		validateRest(chain, text, rest)
	}
}

func validateNames(c *rule.Check, leaf *x509.Certificate) {
	for _, name := range leaf.DNSNames {
		if name == "" {
			c.Invalid(name, "leaf certificate should not contain empty DNSName")
		}
		if strings.Contains(name, "..") {
			c.Invalid(name, "leaf certificate's DNSName should not contain '..'")
		}
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
			c.Invalid(name, "leaf certificate's DNSName should not start or end with '.'")
		}
	}
	for _, address := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(address); err != nil {
			c.Invalid(address, "leaf certificate should not contain invalid EmailAddress")
		}
	}
}

// validateTimes reports whether the times in the status are those of the certificate.
func validateTimes(c *rule.Check, r *certificatesv1beta1.PodCertificateRequest, leaf *x509.Certificate) bool {
	before, after, refresh := c.At("notBefore"), c.At("notAfter"), c.At("beginRefreshAt")
	from, to, begin := r.Status.NotBefore, r.Status.NotAfter, r.Status.BeginRefreshAt
	if from == nil {
		before.Required("must be present and consistent with the issued certificate")
	}
	if to == nil {
		after.Required("must be present and consistent with the issued certificate")
	}
	if begin == nil {
		refresh.Required("must be present and in the range [notbefore+10min, notafter-10min]")
	}
	if len(c.Errors()) > 0 {
		return false
	}
	const margin = 10 * time.Minute
	lifetime, off := leaf.NotAfter.Sub(leaf.NotBefore), time.Since(from.Time).Abs()
	switch {
	case !from.Time.Equal(leaf.NotBefore):
		before.Invalid(from.Time, "must be set to the NotBefore time encoded in the leaf certificate")
	case off >= 5*time.Minute:
		before.Invalid(from.Time, "must be set to within 5 minutes of kube-apiserver's current time")
	case !to.Time.Equal(leaf.NotAfter):
		after.Invalid(to.Time, "must be set to the NotAfter time encoded in the leaf certificate")
	case lifetime < time.Hour:
		c.At("certificateChain").Invalid(lifetime, "leaf certificate lifetime must be >= 1 hour")
	case lifetime > time.Duration(*r.Spec.MaxExpirationSeconds)*time.Second:
		c.At("certificateChain").Invalid(lifetime, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", *r.Spec.MaxExpirationSeconds))
	case begin.Time.Before(from.Add(margin)):
		refresh.Invalid(begin.Time, "must be at least 10 minutes after status.notBefore")
	case begin.After(to.Add(-margin)):
		refresh.Invalid(begin.Time, "must be at least 10 minutes before status.notAfter")
	default:
		return true
	}
	return false
}

// validateRest checks that the rest of the chain consists of certificates.
func validateRest(c *rule.Check, text string, rest []byte) {
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			c.Invalid(text, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			c.Invalid(text, "intermediate certificate does not parse as valid X.509")
			return
		}
	}
}
