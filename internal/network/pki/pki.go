// Package pki creates and stores the certificates of the server and its administrator.
//
// It knows a directory of key pairs: a CA, created once, and certificates signed by it. A
// certificate that is missing, expiring, or for other names is replaced. The package also loads
// the files of a user's own PKI. It does not know the use of the certificates.
package pki

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/store/atomicfile"
)

// Files in the directory of a PKI. Each has a certificate and its key, so that they cannot be
// separated; ca.crt is for other programs.
const (
	authorityFile  = "ca.pem"
	publicFile     = "ca.crt"
	servingFile    = "serving.pem"
	servingRSAFile = "serving-rsa.pem"
	adminFile      = "admin.pem"
	frontProxyFile = "front-proxy-ca.pem"
)

const (
	year          = 365 * 24 * time.Hour
	authorityLife = 10 * year
	adminLife     = 10 * year // a reader of its key can read the CA's key too
	servingLife   = year
)

// A PKI is a CA and its certificates.
type PKI struct {
	dir   string // "": in memory
	names names

	authority *Pair
	admin     *Pair

	curve, rsa serving
}

// A serving is a serving certificate. It is loaded or created on first use: an RSA key takes a
// while.
type serving struct {
	file string
	want leaf

	mu   sync.Mutex
	pair *Pair
	tls  *tls.Certificate // of pair
}

// Open returns the PKI in a directory, which is created if missing. Serving certificates are
// valid for hosts (names or addresses) and the names that every server has. With dir ""
// everything is new and in memory.
//
// Only one process at a time may have a directory open.
func Open(dir string, hosts []string) (*PKI, error) {
	p := &PKI{dir: dir, names: namesOf(hosts)}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
	}
	now := time.Now()
	if err := p.openAuthority(now); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	admin := leaf{name: "kubernetes-admin", groups: []string{"system:masters"}, usage: x509.ExtKeyUsageClientAuth, life: adminLife}
	var err error
	if p.admin, err = p.keep(adminFile, admin, now); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	p.curve.file, p.curve.want = servingFile, leaf{name: "anykind", names: p.names, usage: x509.ExtKeyUsageServerAuth, life: servingLife}
	p.rsa.file, p.rsa.want = servingRSAFile, p.curve.want
	p.rsa.want.rsa = true
	if p.curve.pair, err = p.keep(p.curve.file, p.curve.want, now); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	p.curve.tls = p.curve.pair.TLS()
	return p, nil
}

// openAuthority loads or creates the CA.
func (p *PKI) openAuthority(now time.Time) error {
	var err error
	if p.authority, err = p.openAuthorityIn(authorityFile, "anykind-ca", now); err != nil {
		return err
	}
	return p.publish()
}

// FrontProxy returns the CA of front proxies, which is created if missing. It is separate from
// the CA that signs user certificates.
func (p *PKI) FrontProxy() (*Pair, error) {
	pair, err := p.openAuthorityIn(frontProxyFile, "anykind-front-proxy-ca", time.Now())
	if err != nil {
		return nil, fmt.Errorf("certificates of front proxies: %w", err)
	}
	return pair, nil
}

// openAuthorityIn loads or creates a CA in a file. An unreadable CA is not replaced: every
// certificate that it ever signed depends on it.
func (p *PKI) openAuthorityIn(file, name string, now time.Time) (*Pair, error) {
	pair, err := p.load(file)
	var key crypto.Signer
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("the CA in %s is unusable: %w; restore the file, or remove it for a new CA, "+
			"which invalidates all certificates of the old one", filepath.Join(p.dir, file), err)
	case !pair.Cert.IsCA:
		return nil, fmt.Errorf("the certificate in %s is not a CA", filepath.Join(p.dir, file))
	case pair.Cert.NotAfter.Sub(now) < authorityLife/2:
		key = pair.Key // the key is reused: its certificates stay valid
	default:
		return pair, nil
	}
	if pair, err = newAuthority(name, now, key); err != nil || p.dir == "" {
		return pair, err
	}
	return pair, atomicfile.Replace(filepath.Join(p.dir, file), pair.pem(), 0o600)
}

// publish writes the certificate of the CA to ca.crt.
func (p *PKI) publish() error {
	if p.dir == "" {
		return nil
	}
	path := filepath.Join(p.dir, publicFile)
	if old, err := os.ReadFile(path); err == nil && slices.Equal(old, p.CA()) {
		return nil
	}
	return atomicfile.ReplaceCached(path, p.CA(), 0o644)
}

// keep returns the pair in a file if it is still as wanted, and replaces it otherwise.
func (p *PKI) keep(file string, want leaf, now time.Time) (*Pair, error) {
	if pair, err := p.load(file); err == nil && want.is(pair.Cert, p.authority.Cert, now) {
		return pair, nil
	}
	pair, err := p.authority.sign(want, now)
	if err != nil || p.dir == "" {
		return pair, err
	}
	return pair, atomicfile.ReplaceCached(filepath.Join(p.dir, file), pair.pem(), 0o600)
}

func (p *PKI) load(file string) (*Pair, error) {
	if p.dir == "" {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		return nil, err
	}
	return parsePair(data)
}

// CA returns the certificate of the CA in PEM.
func (p *PKI) CA() []byte { return p.authority.CertPEM() }

// Authority returns the certificate of the CA.
func (p *PKI) Authority() *x509.Certificate { return p.authority.Cert }

// Admin returns the client certificate of the administrator.
func (p *PKI) Admin() *Pair { return p.admin }

// Serving returns the serving certificate.
func (p *PKI) Serving() *Pair { return p.curve.pair }

// ServingRSA returns the serving certificate for clients that support only RSA.
func (p *PKI) ServingRSA() (*Pair, error) {
	if _, err := p.current(&p.rsa); err != nil {
		return nil, err
	}
	p.rsa.mu.Lock()
	defer p.rsa.mu.Unlock()
	return p.rsa.pair, nil
}

// Client returns a new client certificate for a user in groups. It is not stored.
func (p *PKI) Client(user string, groups ...string) (*Pair, error) {
	return p.authority.sign(leaf{name: user, groups: groups, usage: x509.ExtKeyUsageClientAuth, life: adminLife}, time.Now())
}

// GetCertificate is for tls.Config: it returns the serving certificate, renewed before it
// expires. Clients that support only RSA get one with RSA.
func (p *PKI) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	curve, err := p.current(&p.curve)
	if err != nil || hello == nil || accepts(hello, curve) {
		return curve, err
	}
	if other, err := p.current(&p.rsa); err == nil && accepts(hello, other) {
		return other, nil
	}
	return curve, nil
}

// accepts reports whether a client supports the algorithms of a certificate, whatever its names.
func accepts(hello *tls.ClientHelloInfo, c *tls.Certificate) bool {
	nameless := *hello
	nameless.ServerName = ""
	return nameless.SupportsCertificate(c) == nil
}

// current returns a serving certificate that is fresh.
func (p *PKI) current(s *serving) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.pair == nil || !s.want.fresh(s.pair.Cert, now) {
		pair, err := p.keep(s.file, s.want, now)
		if pair == nil {
			return nil, fmt.Errorf("renewing the serving certificate: %w", err)
		}
		// A certificate that could not be stored serves until the next start.
		s.pair, s.tls = pair, pair.TLS()
	}
	return s.tls, nil
}

// names are the names and addresses of a server.
type names struct {
	dns []string
	ips []net.IP
}

// namesOf returns hosts and the names that every server has.
func namesOf(hosts []string) names {
	n := names{
		dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		ips: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			if !ip.IsUnspecified() && !slices.ContainsFunc(n.ips, ip.Equal) {
				n.ips = append(n.ips, ip)
			}
		} else if h != "" && isASCII(h) && !slices.Contains(n.dns, h) {
			n.dns = append(n.dns, h)
		}
	}
	return n
}

// isASCII reports whether a certificate can contain a name.
func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Hosts returns the hosts for a server that listens on address: all addresses of the machine if
// it is unspecified.
func Hosts(address string) []string {
	hosts := []string{address}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if ip := net.ParseIP(address); address != "" && (ip == nil || !ip.IsUnspecified()) {
		return hosts
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return hosts // further hosts can be configured
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}
