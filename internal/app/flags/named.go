package flags

import (
	"errors"
	"strings"

	"github.com/anykind/anykind/internal/network/pki"
)

// namedCertificates are the values of --tls-sni-cert-key: CERT,KEY or CERT,KEY:NAME,NAME.
type namedCertificates []pki.Named

// Set adds a certificate.
func (c *namedCertificates) Set(value string) error {
	files, names, isNamed := strings.Cut(value, ":")
	var n pki.Named
	if isNamed && strings.TrimSpace(names) == "" {
		return errors.New("empty names list is not allowed")
	} else if isNamed {
		for name := range strings.SplitSeq(names, ",") {
			n.Names = append(n.Names, strings.TrimSpace(name))
		}
	}
	cert, key, ok := strings.Cut(files, ",")
	if !ok || strings.Contains(key, ",") {
		return errors.New("expected comma separated certificate and key file paths")
	}
	n.CertFile, n.KeyFile = strings.TrimSpace(cert), strings.TrimSpace(key)
	*c = append(*c, n)
	return nil
}

func (c *namedCertificates) String() string {
	var all []string
	for _, n := range *c {
		text := n.CertFile + "," + n.KeyFile
		if len(n.Names) > 0 {
			text += ":" + strings.Join(n.Names, ",")
		}
		all = append(all, text)
	}
	return "[" + strings.Join(all, ";") + "]"
}

// Type is the name of the value in help.
func (*namedCertificates) Type() string { return "namedCertKey" }
