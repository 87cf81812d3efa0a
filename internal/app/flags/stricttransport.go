package flags

import (
	"errors"
	"strings"
)

var (
	errEmptyDirective = errors.New("empty value in strict-transport-security-directives")
	ErrNoDirective    = errors.New("--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information")
)

// checkDirectives returns an error for an invalid directive.
func checkDirectives(directives []string) error {
	for _, d := range directives {
		switch name, _, hasValue := strings.Cut(d, "="); {
		case strings.TrimSpace(d) == "":
			return errEmptyDirective
		case d == "includeSubDomains" || d == "preload":
		case name != "max-age" || !hasValue || strings.Count(d, "=") != 1:
			return ErrNoDirective
		}
	}
	return nil
}
