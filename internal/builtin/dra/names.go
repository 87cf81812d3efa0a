package dra

import (
	"fmt"
	"regexp"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
)

func label(name string, at *field.Path) field.ErrorList {
	return kind.Invalids(at, name, validation.IsDNS1123Label(name)).WithOrigin("format=k8s-short-name")
}

func subdomain(name string, at *field.Path) field.ErrorList {
	return kind.Invalids(at, name, validation.IsDNS1123Subdomain(name)).WithOrigin("format=k8s-long-name")
}

func labelValue(value string, at *field.Path) field.ErrorList {
	return kind.Invalids(at, value, validation.IsValidLabelValue(value))
}

func nodeName(name string, at *field.Path) field.ErrorList {
	return kind.Invalids(at, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// className validates a class name, which is required.
func className(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return subdomain(name, at)
}

// driver validates the name of a driver, by the rules of CSI drivers.
func driver(name string, at *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(name) > resourcev1.DriverNameMaxLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.DriverNameMaxLength).WithOrigin("maxLength"))
	}
	format := kind.Invalids(at, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))
	return append(errs, format.WithOrigin("format=k8s-long-name-caseless")...)
}

// pool validates the name of a pool: subdomains separated by slashes.
func pool(name string, at *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, subdomain(part, at)...)
	}
	return errs.WithOrigin("format=k8s-resource-pool-name")
}

func uid(id string, at *field.Path) (errs field.ErrorList) {
	if wrong := wrongUUID(id); wrong != "" {
		errs = append(errs, field.Invalid(at, id, "error validating uid: "+wrong))
	} else if len(id) != 36 || id != strings.ToLower(id) {
		errs = append(errs, field.Invalid(at, id, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"))
	}
	return errs.WithOrigin("format=k8s-uuid")
}

// A UUID can also be in braces, after a prefix, or without hyphens.
var (
	hyphened = regexp.MustCompile(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`)
	plain    = regexp.MustCompile(`^[[:xdigit:]]{32}$`)
)

// wrongUUID returns the error of a text that is no UUID, or "".
func wrongUUID(id string) string {
	const urn, length = "urn:uuid:", 36
	bare := id
	switch len(id) {
	case length:
	case len(urn) + length:
		if bare = id[len(urn):]; !strings.EqualFold(id[:len(urn)], urn) {
			return fmt.Sprintf("invalid urn prefix: %q", id[:len(urn)])
		}
	case length + 2:
		if bare = id[1 : length+1]; id != "{"+bare+"}" {
			return "invalid bracketed UUID format"
		}
	case length - 4:
		if plain.MatchString(id) {
			return ""
		}
	default:
		return fmt.Sprintf("invalid UUID length: %d", len(id))
	}
	if !hyphened.MatchString(bare) {
		return "invalid UUID format"
	}
	return ""
}

// qualified validates the name of an attribute or a capacity, with an optional domain.
func qualified(name string, at *field.Path) (errs field.ErrorList) {
	domain, id, ok := strings.Cut(name, "/")
	if !ok {
		return identifier(name, at)
	}
	if strings.Contains(id, "/") {
		return nil
	}
	if domain == "" {
		errs = append(errs, field.Invalid(at, "", "the domain must not be empty"))
	} else {
		errs = append(errs, driver(domain, at)...)
	}
	if id == "" {
		return append(errs, field.Invalid(at, "", "the name must not be empty"))
	}
	return append(errs, identifier(id, at)...)
}

// fullyQualified validates such a name with a required domain.
func fullyQualified(name string, at *field.Path) field.ErrorList {
	errs := qualified(name, at)
	if !strings.Contains(name, "/") {
		errs = append(errs, field.Invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash"))
	}
	return errs.WithOrigin("format=k8s-resource-fully-qualified-name")
}

func identifier(id string, at *field.Path) (errs field.ErrorList) {
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.DeviceMaxIDLength))
	}
	return append(errs, kind.Invalids(at, id, content.IsCIdentifier(id))...)
}

// shortened returns a key as shown in a path.
func shortened(key string, max int) string {
	if len(key) <= max {
		return key
	}
	rest := max - len("...")
	return key[:(rest+1)/2] + "..." + key[len(key)-rest/2:]
}
