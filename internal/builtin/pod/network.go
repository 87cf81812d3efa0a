package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// Limits of DNS resolvers.
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchBytes   = 2048
	maxHostnameBytes = 64
)

// checkNetwork validates the host names and the DNS configuration of a pod.
func checkNetwork(c *rule.Check, spec *corev1.PodSpec) {
	known(c.At("dnsPolicy"), spec.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	checkDNS(c.At("dnsConfig"), spec)
	if spec.HostNetwork {
		checkPortsOfHost(c, spec)
	}
	if spec.HostnameOverride == nil {
		return
	}
	at, name := c.At("hostnameOverride"), *spec.HostnameOverride
	if isTrue(spec.SetHostnameAsFQDN) {
		at.Forbidden("may not be specified when setHostnameAsFQDN is true")
	}
	if spec.HostNetwork {
		at.Forbidden("may not be specified when hostNetwork is true")
	}
	if len(name) > maxHostnameBytes {
		at.TooLong(maxHostnameBytes)
	}
	at.Invalids(name, validation.IsDNS1123Subdomain(name))
}

// checkPortsOfHost rejects host ports that differ from the container port in the host network. A
// template may omit the host port.
func checkPortsOfHost(c *rule.Check, spec *corev1.PodSpec) {
	isPod := rule.Given[podContext](c).isPod
	for i := range spec.Containers {
		for j, p := range spec.Containers[i].Ports {
			if (isPod || p.HostPort != 0) && p.HostPort != p.ContainerPort {
				c.At("containers", i, "ports", j, "hostPort").Invalid(p.HostPort, "must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

func checkDNS(c *rule.Check, spec *corev1.PodSpec) {
	config := spec.DNSConfig
	if spec.DNSPolicy == corev1.DNSNone {
		if config == nil {
			c.Required("must provide `dnsConfig` when `dnsPolicy` is None")
			return
		}
		if len(config.Nameservers) == 0 {
			c.At("nameservers").Required("must provide at least one DNS nameserver when `dnsPolicy` is None")
			return
		}
	}
	if config == nil {
		return
	}
	servers, searches := c.At("nameservers"), c.At("searches")
	if len(config.Nameservers) > maxNameservers {
		servers.Invalid(config.Nameservers, fmt.Sprintf("must not have more than %d nameservers", maxNameservers))
	}
	for i, ip := range config.Nameservers {
		c.Add(kind.ValidateLegacyIP(c.Gates, servers.At(i).Path(), ip, nil)...)
	}
	if len(config.Searches) > maxSearches {
		searches.Invalid(config.Searches, fmt.Sprintf("must not have more than %d search paths", maxSearches))
	}
	if len(strings.Join(config.Searches, " ")) > maxSearchBytes {
		searches.Invalid(config.Searches, fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchBytes))
	}
	for i, s := range config.Searches {
		if s == "." {
			continue
		}
		s = strings.TrimSuffix(s, ".")
		searches.At(i).Invalids(s, validation.IsDNS1123SubdomainWithUnderscore(s))
	}
	for i, o := range config.Options {
		if o.Name == "" {
			c.At("options", i).Required("must not be empty")
		}
	}
}

func checkHostAlias(c *rule.Check, a *corev1.HostAlias) {
	c.Add(kind.ValidateLegacyIP(c.Gates, c.At("ip").Path(), a.IP, nil)...)
	for i, n := range a.Hostnames {
		c.At("hostnames", i).Invalids(n, validation.IsDNS1123Subdomain(n))
	}
}
