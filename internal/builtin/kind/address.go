package kind

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/object/gate"
)

// ValidateReachable rejects addresses that have no meaning on other machines. The caller checks
// loopback addresses.
func ValidateReachable(at *field.Path, address string) (errs field.ErrorList) {
	ip := netutils.ParseIPSloppy(address)
	if ip == nil {
		return field.ErrorList{field.Invalid(at, address, "must be a valid IP address")}
	}
	if ip.IsUnspecified() {
		errs = append(errs, field.Invalid(at, address, fmt.Sprintf("may not be unspecified (%v)", address)))
	}
	if ip.IsLinkLocalUnicast() {
		errs = append(errs, field.Invalid(at, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
	}
	if ip.IsLinkLocalMulticast() {
		errs = append(errs, field.Invalid(at, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))
	}
	return errs
}

// ValidateLegacyIP validates an address of a field that took ambiguous ones in the past. Old addresses stay valid.
func ValidateLegacyIP(gates *gate.Set, at *field.Path, ip string, old []string) field.ErrorList {
	return validation.IsValidIPForLegacyField(at, ip, gates.On(gate.StrictIPCIDRValidation), old)
}

// ValidateLegacyCIDR validates a range of such a field.
func ValidateLegacyCIDR(gates *gate.Set, at *field.Path, cidr string, old []string) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(at, cidr, gates.On(gate.StrictIPCIDRValidation), old)
}

// WarnOfIP warns about an address that parsers interpret differently. It ignores an invalid one.
func WarnOfIP(at *field.Path, ip string) []string {
	if len(validation.IsValidIPForLegacyField(at, ip, false, nil)) > 0 {
		return nil
	}
	return validation.GetWarningsForIP(at, ip)
}
func IsIPv6(ip string) bool {
	parsed := netutils.ParseIPSloppy(ip)
	return parsed != nil && parsed.To4() == nil
}

// IngressPoints returns the IP addresses or host names of a load balancer's status, sorted.
func IngressPoints(status map[string]any) []string {
	var at []string
	for _, i := range List(status, "loadBalancer", "ingress") {
		ingress, _ := i.(map[string]any)
		for _, name := range []string{"ip", "hostname"} {
			if a := Text(ingress, name); a != "" {
				at = append(at, a)
				break
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}
