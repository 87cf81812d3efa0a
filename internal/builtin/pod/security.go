package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// checkSecurityContext validates the security context of a container.
func checkSecurityContext(c *rule.Check, sc *corev1.SecurityContext) {
	pod := rule.Given[podContext](c)
	if isTrue(sc.Privileged) && !rule.Given[Policy](c).Privileged {
		c.At("privileged").Forbidden("disallowed by cluster policy")
	}
	if sc.RunAsUser != nil {
		c.At("runAsUser").Invalids(*sc.RunAsUser, validation.IsValidUserID(*sc.RunAsUser))
	}
	if sc.RunAsGroup != nil {
		c.At("runAsGroup").Invalids(*sc.RunAsGroup, validation.IsValidGroupID(*sc.RunAsGroup))
	}
	if sc.ProcMount != nil {
		known(c.At("procMount"), *sc.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
		if *sc.ProcMount == corev1.UnmaskedProcMount && hostUsers(&pod.spec) {
			c.At("procMount").Invalid(sc.ProcMount, "`hostUsers` must be false to use `Unmasked`")
		}
	}
	if sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation {
		if isTrue(sc.Privileged) {
			c.Invalid(sc, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
		}
		if addsSysAdmin(sc) && !pod.allowed.sysAdmin {
			c.Invalid(sc, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
		}
	}
	switch pod.os() {
	case corev1.Linux:
		if sc.WindowsOptions != nil {
			c.At("windowsOptions").Forbidden("windows options cannot be set for a linux pod")
		}
	case corev1.Windows:
		forbidOnWindows(c, sc)
	}
}

// addsSysAdmin reports whether a container adds the capability CAP_SYS_ADMIN.
func addsSysAdmin(sc *corev1.SecurityContext) bool {
	return sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, "CAP_SYS_ADMIN")
}

func isTrue(b *bool) bool { return b != nil && *b }

func forbidOnWindows(c *rule.Check, sc *corev1.SecurityContext) {
	for _, f := range []struct {
		name    string
		isThere bool
	}{
		{"appArmorProfile", sc.AppArmorProfile != nil},
		{"seLinuxOptions", sc.SELinuxOptions != nil},
		{"seccompProfile", sc.SeccompProfile != nil},
		{"capabilities", sc.Capabilities != nil},
		{"readOnlyRootFilesystem", sc.ReadOnlyRootFilesystem != nil},
		{"privileged", sc.Privileged != nil},
		{"allowPrivilegeEscalation", sc.AllowPrivilegeEscalation != nil},
		{"procMount", sc.ProcMount != nil},
		{"runAsUser", sc.RunAsUser != nil},
		{"runAsGroup", sc.RunAsGroup != nil},
	} {
		if f.isThere {
			c.At(f.name).Forbidden("cannot be set for a windows pod")
		}
	}
}

// checkSeccompProfile validates a profile of a container or a pod.
func checkSeccompProfile(c *rule.Check, p *corev1.SeccompProfile) {
	if p.Type == "" {
		c.At("type").Required("type is required when seccompProfile is set")
	} else {
		known(c.At("type"), p.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault,
			corev1.SeccompProfileTypeUnconfined)
	}
	at := c.At("localhostProfile")
	switch isLocal := p.Type == corev1.SeccompProfileTypeLocalhost; {
	case isLocal && p.LocalhostProfile == nil:
		at.Required("must be set when seccomp type is Localhost")
	case isLocal:
		checkDescending(at, *p.LocalhostProfile)
	case p.LocalhostProfile != nil:
		at.Invalid(p, "can only be set when seccomp type is Localhost")
	}
}

// checkAppArmorProfile validates a profile of a container or a pod.
func checkAppArmorProfile(c *rule.Check, p *corev1.AppArmorProfile) {
	at := c.At("localhostProfile")
	switch p.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
			at.Required("must be set when AppArmor type is Localhost")
			return
		}
		if strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile {
			at.Invalid(*p.LocalhostProfile, "must not be padded with whitespace")
		}
		if len(*p.LocalhostProfile) > 4095 {
			at.TooLong(4095)
		}
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			at.Invalid(p.LocalhostProfile, "can only be set when AppArmor type is Localhost")
		}
	case "":
		c.At("type").Required("type is required when appArmorProfile is set")
	default:
		known(c.At("type"), p.Type, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault,
			corev1.AppArmorProfileTypeUnconfined)
	}
}

// The syntax of Windows user and domain names.
var (
	control       = rule.Pattern(`[[:cntrl:]]`)
	netBIOSDomain = rule.Pattern(`^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$`)
	dnsDomain     = rule.Pattern(`^` + dnsPart + `(\.` + dnsPart + `)*$`)
	noUserName    = rule.Pattern(`["/\\:;|=,+*?<>@\[\]]`)
)

const dnsPart = `[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?`

// checkWindowsOptions validates the Windows options of a container or a pod.
func checkWindowsOptions(c *rule.Check, o *corev1.WindowsSecurityContextOptions) {
	if name := o.GMSACredentialSpecName; name != nil {
		c.At("gmsaCredentialSpecName").Invalids(name, validation.IsDNS1123Subdomain(*name))
	}
	if spec := o.GMSACredentialSpec; spec != nil {
		switch at := c.At("gmsaCredentialSpec"); {
		case *spec == "":
			at.Invalid(spec, "gmsaCredentialSpec cannot be an empty string")
		case len(*spec) > 64<<10:
			at.Invalid(spec, "gmsaCredentialSpec size must be under 64 KiB")
		}
	}
	if o.RunAsUserName != nil {
		c.At("runAsUserName").Invalids(o.RunAsUserName, wrongUserName(*o.RunAsUserName))
	}
}

// wrongUserName returns the errors of DOMAIN\USER or USER.
func wrongUserName(name string) (details []string) {
	parts := strings.Split(name, `\`)
	switch {
	case name == "":
		return []string{"runAsUserName cannot be an empty string"}
	case control().MatchString(name):
		return []string{"runAsUserName cannot contain control characters"}
	case len(parts) > 2:
		return []string{"runAsUserName cannot contain more than one backslash"}
	}
	if len(parts) == 2 {
		if len(parts[0]) >= 256 {
			details = append(details, "runAsUserName's Domain length must be under 256 characters")
		}
		if !netBIOSDomain().MatchString(parts[0]) && !dnsDomain().MatchString(parts[0]) {
			details = append(details, "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
		}
	}
	user := parts[len(parts)-1]
	switch {
	case user == "":
		details = append(details, "runAsUserName's User cannot be empty")
	case len(user) > 104:
		details = append(details, "runAsUserName's User length must not be longer than 104 characters")
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		details = append(details, "runAsUserName's User cannot contain only periods or spaces")
	}
	if noUserName().MatchString(user) {
		details = append(details, `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
	return details
}
