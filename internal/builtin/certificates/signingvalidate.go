package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/network/pki"
)

// legacySigner was the default signer.
const legacySigner = "kubernetes.io/legacy-unknown"

// validateRequest validates a request and its status. Invalid values of the old object may stay.
func validateRequest(c *rule.Check, r, old *certificatesv1.CertificateSigningRequest) {
	if err := validateSignature(r.Spec.Request); err != nil {
		shown := r.Spec.Request
		if kind.Value(c.Object, "spec", "request") == "" {
			shown = []byte{} // not the same as nil
		}
		c.At("spec", "request").Invalid(shown, err.Error())
	}
	var was certificatesv1.CertificateSigningRequest
	if old != nil {
		was = *old
	}
	validateUsages(c.At("spec", "usages"), r.Spec.Usages, was.Spec.Usages)
	signer := c.At("spec", "signerName")
	if r.Spec.SignerName == legacySigner && was.Spec.SignerName != legacySigner {
		signer.Invalid(r.Spec.SignerName, "the legacy signerName is not allowed via this API version")
	} else {
		kind.ValidateSignerName(signer, r.Spec.SignerName)
	}
	if s := r.Spec.ExpirationSeconds; s != nil && *s < 600 {
		c.At("spec", "expirationSeconds").Invalid(*s, "may not specify a duration less than 600 seconds (10 minutes)")
	}
	validateConditions(c.At("status", "conditions"), r.Status.Conditions, was.Status.Conditions)
	changed := !bytes.Equal(r.Status.Certificate, was.Status.Certificate)
	if changed && validateChain(was.Status.Certificate) == nil {
		if err := validateChain(r.Status.Certificate); err != nil {
			c.At("status", "certificate").Invalid("<certificate data>", err.Error())
		}
	}
	if old == nil {
		return
	}
	validateApproval(c.At("status", "conditions"), r.Status.Conditions, old.Status.Conditions)
	if changed {
		at := c.At("status", "certificate")
		switch {
		case c.Subresource != "status":
			at.Forbidden("updates may not set certificate content")
		case len(old.Status.Certificate) > 0:
			at.Forbidden("updates may not modify existing certificate content")
		}
	}
}

func validateUsages(c *rule.Check, usages, old []certificatesv1.KeyUsage) {
	if len(usages) == 0 {
		c.Required("")
	}
	unknown := func(u certificatesv1.KeyUsage) bool { return !slices.Contains(knownUsages, u) }
	if !slices.ContainsFunc(old, unknown) {
		for i, u := range usages {
			if unknown(u) {
				rule.NotSupported(c.At(i), u, knownUsages...)
			}
		}
	}
	if len(repeated(old)) > 0 {
		return
	}
	for _, i := range repeated(usages) {
		c.At(i).Duplicate(usages[i])
	}
}

// repeated returns the indexes of duplicates in a list.
func repeated[T comparable](list []T) (at []int) {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			at = append(at, i)
		}
	}
	return at
}

// knownUsages are sorted as in errors.
var knownUsages = func() []certificatesv1.KeyUsage {
	all := []certificatesv1.KeyUsage{
		certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment,
		certificatesv1.UsageKeyEncipherment, certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment,
		certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageEncipherOnly,
		certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth,
		certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection,
		certificatesv1.UsageSMIME, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
		certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping, certificatesv1.UsageOCSPSigning,
		certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
	}
	slices.Sort(all)
	return all
}()

func validateConditions(c *rule.Check, conditions, old []certificatesv1.CertificateSigningRequestCondition) {
	types, were := typesOf(conditions), typesOf(old)
	for i, condition := range conditions {
		if condition.Type == "" && !slices.Contains(were, "") {
			c.At(i, "type").Required("")
		}
		allowed := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		if slices.Contains(decisions, condition.Type) {
			allowed = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		switch at := c.At(i, "status"); {
		case condition.Status == "":
			at.Required("")
		case !slices.Contains(allowed, condition.Status):
			rule.NotSupported(at, condition.Status, allowed...)
		}
	}
	if both(types) && !both(were) {
		exclusive(c, types)
	}
	if len(repeated(were)) > 0 {
		return
	}
	for _, i := range repeated(types) {
		c.At(i, "type").Duplicate(types[i])
	}
}

// decisions are the permanent conditions. They are always true.
var decisions = []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed}

func typesOf(conditions []certificatesv1.CertificateSigningRequestCondition) (types []certificatesv1.RequestConditionType) {
	for _, c := range conditions {
		types = append(types, c.Type)
	}
	return types
}

func both(types []certificatesv1.RequestConditionType) bool {
	return slices.Contains(types, certificatesv1.CertificateApproved) && slices.Contains(types, certificatesv1.CertificateDenied)
}

// validateApproval checks that decisions stay, and that only the subresource approval adds
// approvals and denials.
func validateApproval(c *rule.Check, conditions, old []certificatesv1.CertificateSigningRequestCondition) {
	count := func(of certificatesv1.RequestConditionType) (n, before int) {
		has := func(t certificatesv1.RequestConditionType) bool { return t != of }
		return len(slices.DeleteFunc(typesOf(conditions), has)), len(slices.DeleteFunc(typesOf(old), has))
	}
	for _, of := range decisions {
		if n, before := count(of); n < before {
			c.Forbidden(fmt.Sprintf("updates may not remove a condition of type %q", of))
		}
	}
	if c.Subresource == "approval" {
		return
	}
	for _, of := range decisions[:2] {
		if n, before := count(of); n > before {
			c.Forbidden(fmt.Sprintf("updates may not add a condition of type %q", of))
		}
	}
}

// validateSignature checks that a certificate request is signed with its own key.
func validateSignature(text []byte) error {
	parsed, err := pki.ParseRequest(text)
	if err != nil {
		return err
	}
	return parsed.CheckSignature()
}

// validateChain checks that a text, if not empty, consists of certificates.
func validateChain(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	blocks := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) != 0 {
			return errors.New("no PEM block headers are permitted")
		}
		certs, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certs) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
	}
	if blocks == 0 {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}

// exclusive adds the errors of a request that is approved and denied. Handwritten validation has one error for each condition that
// follows its opposite.
func exclusive(c *rule.Check, types []certificatesv1.RequestConditionType) {
	if rule.Tagged(c.Gates) {
		c.Invalid(`{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}`, "must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`")
		return
	}
	for i, t := range types {
		if slices.Contains(decisions[:2], t) && both(types[:i+1]) {
			c.Invalid(t, "Approved and Denied conditions are mutually exclusive")
		}
	}
}
