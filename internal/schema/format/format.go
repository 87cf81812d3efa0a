// Package format validates the formats of strings and numbers that schemas enforce.
//
// It takes the name of a format and a value. It knows nothing of schemas.
package format

import (
	"net"
	"net/url"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
	netutils "k8s.io/utils/net"
)

// formats are the formats of strings that are enforced, by their names without
// dashes. Any other format is for documentation only.
var formats = map[string]func(string) bool{
	"bsonobjectid": strfmt.IsBSONObjectID,
	"uri":          isURI,
	"email":        strfmt.IsEmail,
	"hostname":     isHostname,
	"ipv4":         isIPv4,
	"ipv6":         isIPv6,
	"cidr":         isCIDR,
	"mac":          isMAC,
	"uuid":         strfmt.IsUUID,
	"uuid3":        strfmt.IsUUID3,
	"uuid4":        strfmt.IsUUID4,
	"uuid5":        strfmt.IsUUID5,
	"isbn":         registered("isbn"),
	"isbn10":       registered("isbn10"),
	"isbn13":       registered("isbn13"),
	"creditcard":   registered("creditcard"),
	"ssn":          registered("ssn"),
	"hexcolor":     registered("hexcolor"),
	"rgbcolor":     registered("rgbcolor"),
	"byte":         isBase64,
	"password":     func(string) bool { return true },
	"date":         isDate,
	"duration":     strfmt.IsDuration,
	"datetime":     isDateTime,
	"k8sshortname": strfmt.IsShortName,
	"k8slongname":  strfmt.IsLongName,
}

// Of returns the check of a format, or nil if all strings are valid.
func Of(format string) func(string) bool { return formats[strings.ReplaceAll(format, "-", "")] }

// Enforced reports whether a format is checked for values of a type. The type may be empty.
func Enforced(typ, format string) bool {
	switch typ {
	case "", "string":
		return Of(format) != nil
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	default:
		return false
	}
}

// registered returns a check of a format that only the registry has, which is slow and locks.
func registered(name string) func(string) bool {
	return func(s string) bool { return strfmt.Default.Validates(name, s) }
}

func isURI(s string) bool {
	_, err := url.ParseRequestURI(s)
	return err == nil
}

// Zeros in front of a number are tolerated in IPv4 addresses.
func isIPv4(s string) bool {
	return strings.Contains(s, ".") && netutils.ParseIPSloppy(s) != nil
}

func isIPv6(s string) bool {
	return strings.Contains(s, ":") && net.ParseIP(s) != nil
}

func isCIDR(s string) bool {
	_, _, err := netutils.ParseCIDRSloppy(s)
	return err == nil
}

func isMAC(s string) bool {
	_, err := net.ParseMAC(s)
	return err == nil
}

func isBase64(s string) bool {
	if len(s) == 0 || len(s)%4 != 0 {
		return false
	}
	data := strings.TrimSuffix(s, "=")
	if len(data) < len(s) {
		data = strings.TrimSuffix(data, "=")
	}
	for i := range len(data) {
		switch c := data[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/':
		default:
			return false
		}
	}
	return true
}

// isHostname recognizes common host names without a pattern: labels, and a last one that is a word.
func isHostname(s string) bool {
	label := 0 // start of the present one
	digits, dashes := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9':
			digits = true
		case c == '-' && i > label && i+1 < len(s) && s[i+1] != '.':
			dashes = true
		case c == '.' && i > label && i-label <= 63:
			label, digits, dashes = i+1, false, false
		default:
			return strfmt.IsHostname(s)
		}
	}
	last := len(s) - label
	if label == 0 && !dashes && 1 <= last && last <= 63 ||
		label > 0 && !dashes && !digits && 2 <= last && last <= 63 && len(s) <= 255 {
		return true
	}
	return strfmt.IsHostname(s)
}

// isDate and isDateTime recognise the usual spelling without parsing it.

func isDate(s string) bool {
	return usualDate(s) || strfmt.IsDate(s)
}

func isDateTime(s string) bool {
	const form = "2006-01-02T15:04:05Z"
	if len(s) == len(form) && usualDate(s[:10]) && s[10] == 'T' && s[13] == ':' && s[16] == ':' && s[19] == 'Z' &&
		within(s[11:13], 0, 23) && within(s[14:16], 0, 59) && within(s[17:19], 0, 59) {
		return true
	}
	return strfmt.IsDateTime(s)
}

// usualDate reports whether s is a date of the first 28 days of a month.
func usualDate(s string) bool {
	return len(s) == len("2006-01-02") && s[4] == '-' && s[7] == '-' &&
		within(s[0:2], 0, 99) && within(s[2:4], 0, 99) && within(s[5:7], 1, 12) && within(s[8:10], 1, 28)
}

// within reports whether s, two digits, is a number from low to high.
func within(s string, low, high byte) bool {
	if s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return false
	}
	n := (s[0]-'0')*10 + s[1] - '0'
	return low <= n && n <= high
}
