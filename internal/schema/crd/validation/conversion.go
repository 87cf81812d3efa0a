package validation

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reviewVersions are the versions of ConversionReview that can be sent.
var reviewVersions = []string{"v1", "v1beta1"}

func knownReview(versions []string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(reviewVersions, v) })
}

func webhookOf(c *v1.CustomResourceConversion) *v1.WebhookConversion {
	if c == nil {
		return nil
	}
	return c.Webhook
}

// validateConversion validates the conversion between versions. Paths are those of the internal form,
// which has the fields of the webhook side by side.
func validateConversion(c *v1.CustomResourceConversion, path *field.Path, a allowances) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := oneOf(path.Child("strategy"), string(c.Strategy), string(v1.NoneConverter), string(v1.WebhookConverter))
	webhook := webhookOf(c)
	if webhook == nil {
		webhook = &v1.WebhookConversion{}
	}
	client, reviews := path.Child("webhookClientConfig"), path.Child("conversionReviewVersions")
	if c.Strategy != v1.WebhookConverter {
		if webhook.ClientConfig != nil {
			errs = append(errs, field.Forbidden(client, "should not be set when strategy is not set to Webhook"))
		}
		if len(webhook.ConversionReviewVersions) > 0 {
			errs = append(errs, field.Forbidden(reviews, "should not be set when strategy is not set to Webhook"))
		}
		return errs
	}
	if webhook.ClientConfig == nil {
		errs = append(errs, field.Required(client, "required when strategy is set to Webhook"))
	} else {
		errs = append(errs, Client(webhook.ClientConfig, client)...)
		if err := CABundleError(c); err != nil && !a.badCABundle {
			errs = append(errs, field.Invalid(client.Child("caBundle"), webhook.ClientConfig.CABundle, err.Error()))
		}
	}
	return append(errs, validateReviews(webhook.ConversionReviewVersions, reviews, a)...)
}

// Client returns the errors of the client configuration of a webhook.
func Client(c *v1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		return validateURL(*c.URL, path.Child("url"))
	default:
		return validateService(c.Service, path.Child("service"))
	}
}

func validateURL(raw string, path *field.Path) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(raw)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(path, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(path, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(path, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(path, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(path, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

func validateService(s *v1.ServiceReference, path *field.Path) (errs field.ErrorList) {
	// Kubernetes confuses the two, and so names the other field.
	if s.Namespace == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	port := int32(443)
	if s.Port != nil {
		port = *s.Port
	}
	if bad := utilvalidation.IsValidPortNum(int(port)); bad != nil {
		errs = append(errs, field.Invalid(path.Child("port"), port, "port is not valid: "+strings.Join(bad, ", ")))
	}
	if s.Path == nil || *s.Path == "" || *s.Path == "/" {
		return errs
	}
	return append(errs, validateServicePath(*s.Path, path.Child("path"))...)
}

func validateServicePath(p string, path *field.Path) (errs field.ErrorList) {
	if p == "//" {
		return field.ErrorList{field.Invalid(path, p, "segment[0] may not be empty")}
	}
	if !strings.HasPrefix(p, "/") {
		errs = append(errs, field.Invalid(path, p, "must start with a '/'"))
	}
	for i, segment := range strings.Split(strings.TrimSuffix(p[1:], "/"), "/") {
		if segment == "" {
			errs = append(errs, field.Invalid(path, p, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, bad := range utilvalidation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(path, p, fmt.Sprintf("segment[%d]: %v", i, bad)))
		}
	}
	return errs
}

// validateReviews checks that the webhook speaks a version the server does.
func validateReviews(versions []string, path *field.Path, a allowances) (errs field.ErrorList) {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue
		}
		for _, bad := range utilvalidation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(path.Index(i), v, bad))
		}
	}
	if !knownReview(versions) && !a.noKnownReview {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(reviewVersions, ", ")))
	}
	return errs
}

// CABundleError returns the error of parsing the CA bundle of a conversion webhook. It is nil for a
// valid and for a missing bundle.
func CABundleError(c *v1.CustomResourceConversion) error {
	webhook := webhookOf(c)
	if webhook == nil || webhook.ClientConfig == nil || len(webhook.ClientConfig.CABundle) == 0 {
		return nil
	}
	rest := webhook.ClientConfig.CABundle
	if x509.NewCertPool().AppendCertsFromPEM(rest) {
		return nil
	}
	const wrong = "unable to load root certificates: "
	for len(rest) > 0 {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return errors.New(wrong + "unable to parse bytes as PEM block")
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf(wrong+"failed to parse certificate: %w", err)
		}
	}
	return errors.New(wrong + "no valid certificate authority data seen")
}
