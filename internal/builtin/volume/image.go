package volume

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// PullPolicy returns the default pull policy of an image: Always if the tag is latest, or if it has
// neither tag nor digest.
func PullPolicy(reference string) corev1.PullPolicy {
	if tag, ok := tagOf(reference); ok && tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

var (
	anImage = rule.Pattern(`^` +
		`((?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?` + // domain
		`/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*)` + // path
		`(?::(\w[\w.-]{0,127}))?` + // tag
		`(?:@(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?$`) // digest
	anIdentifier = rule.Pattern(`^[a-f0-9]{64}$`)
)

// tagOf returns the tag of an image reference, as container runtimes parse it.
func tagOf(reference string) (tag string, ok bool) {
	if anIdentifier().MatchString(reference) {
		return "", false
	}
	domain, _, ok := strings.Cut(reference, "/")
	if !ok || !strings.ContainsAny(domain, ".:") && domain != "localhost" && strings.ToLower(domain) == domain {
		reference = "docker.io/library/" + reference
	}
	found := anImage().FindStringSubmatch(reference)
	if found == nil || len(found[1]) > 255 {
		return "", false
	}
	if found[2] == "" && found[3] == "" {
		return "latest", true
	}
	return found[2], true
}
