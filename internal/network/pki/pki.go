// Package pki makes and stores the certificates of the server and its administrator.
//
// It knows a directory of key pairs: an authority, made once, and certificates that the
// authority signed. A certificate that is missing, too old, or for other names is made again.
// The package also reads the files of a PKI of the user's own. It does not know what the
// certificates are used for.
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

// Files in the directory of a PKI. Each has a certificate and its key, so that
// they cannot be parted; ca.crt is there for the tools of others.
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
	adminLife     = 10 * year // who reads its key can read the authority's
	servingLife   = year
)

// A PKI is an authority and what it signed.
type PKI struct {
	dir   string // "" keeps nothing
	names names

	authority *Pair
	admin     *Pair

	curve, rsa serving
}

// A serving is one of the serving certificates. It is loaded or made when it is first needed: the key of
// the one with RSA takes a while.
type serving struct {
	file string
	want leaf

	mu   sync.Mutex
	pair *Pair
	tls  *tls.Certificate // of pair
}

// Open returns the PKI in a directory, which is made if there is none. The
// server is reached as hosts, names or addresses, besides those that it always
// has. With dir "" all is made anew and kept in memory.
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

// openAuthority loads the authority, or makes it.
func (p *PKI) openAuthority(now time.Time) error {
	var err error
	if p.authority, err = p.openAuthorityIn(authorityFile, "anykind-ca", now); err != nil {
		return err
	}
	return p.publish()
}

// FrontProxy returns the authority of front proxies, which is made if there is none. Nobody
// else has a certificate by it: it is not the one that signs certificates of users.
func (p *PKI) FrontProxy() (*Pair, error) {
	pair, err := p.openAuthorityIn(frontProxyFile, "anykind-front-proxy-ca", time.Now())
	if err != nil {
		return nil, fmt.Errorf("certificates of front proxies: %w", err)
	}
	return pair, nil
}

// openAuthorityIn loads the authority in a file, or makes it. One that is there but cannot
// be read is not replaced: all that was ever signed by it depends on it.
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
		key = pair.Key // the same again: what it signed stays good
	default:
		return pair, nil
	}
	if pair, err = newAuthority(name, now, key); err != nil || p.dir == "" {
		return pair, err
	}
	return pair, atomicfile.Replace(filepath.Join(p.dir, file), pair.pem(), 0o600)
}

// publish keeps ca.crt what it should be.
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

// keep returns the pair in a file if it still is what it should be, and makes it
// if not.
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

// CA returns the certificate of the authority in PEM.
func (p *PKI) CA() []byte { return p.authority.CertPEM() }

// Authority returns the certificate of the authority.
func (p *PKI) Authority() *x509.Certificate { return p.authority.Cert }

// Admin returns the client certificate of one who may do everything.
func (p *PKI) Admin() *Pair { return p.admin }

// Serving returns the certificate of the server.
func (p *PKI) Serving() *Pair { return p.curve.pair }

// ServingRSA returns the certificate of the server for clients that accept RSA only.
func (p *PKI) ServingRSA() (*Pair, error) {
	if _, err := p.current(&p.rsa); err != nil {
		return nil, err
	}
	p.rsa.mu.Lock()
	defer p.rsa.mu.Unlock()
	return p.rsa.pair, nil
}

// Client makes a client certificate for a user in groups. It is kept nowhere.
func (p *PKI) Client(user string, groups ...string) (*Pair, error) {
	return p.authority.sign(leaf{name: user, groups: groups, usage: x509.ExtKeyUsageClientAuth, life: adminLife}, time.Now())
}

// GetCertificate is for tls.Config: it returns the serving certificate, a new one if the old one is about
// to expire. Clients that accept RSA only get one with RSA.
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

// accepts reports whether a client accepts the algorithms of a certificate, whatever its names are.
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
		// One that could not be written down serves as well until the next start.
		s.pair, s.tls = pair, pair.TLS()
	}
	return s.tls, nil
}

// names are those under which a server is reached.
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

// isASCII reports whether a certificate can have a name.
func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Hosts returns the hosts that a server is reached as that listens on an address
// of this machine: all addresses of the machine if it is an unspecified one.
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
		return hosts // what is missing can be named by whoever needs it
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}
