package flags

import (
	"crypto/tls"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/server"
)

// protocolFlags restrict TLS and HTTP.
type protocolFlags struct {
	minVersion string
	suites     []string
	curves     []int32
	http1      bool
	streams    int
}

func (f *protocolFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.minVersion, "tls-min-version", "",
		"minimum version of TLS: "+versionNames()+" (default VersionTLS12)")
	flags.StringSliceVar(&f.suites, "tls-cipher-suites", nil,
		"cipher suites for TLS 1.2, by their names in the package crypto/tls of Go; HTTP/2 needs one of "+strings.Join(neededSuites, " and ")+" (default: the secure ones of Go)")
	flags.Int32SliceVar(&f.curves, "tls-curve-preferences", nil,
		"key exchanges for TLS, by their numbers in the package crypto/tls of Go, in any order (default: those of Go)")
	flags.BoolVar(&f.http1, "disable-http2-serving", false, "serve HTTP/1.1 only")
	flags.IntVar(&f.streams, "http2-max-streams-per-connection", 0, "maximum number of concurrent requests of an HTTP/2 connection; 0 is 100")
}

var tlsVersions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11,
	"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

func versionNames() string { return strings.Join(slices.Sorted(maps.Keys(tlsVersions)), ", ") }

// neededSuites are the cipher suites of which HTTP/2 over TLS 1.2 needs one.
var neededSuites = []string{tls.CipherSuiteName(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), tls.CipherSuiteName(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)}

// oldNames are names of cipher suites that Kubernetes accepts, too.
var oldNames = map[string]string{
	"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
}

// options returns the restrictions.
func (f *protocolFlags) options() (p server.Protocol, err error) {
	p.HTTP1, p.Streams = f.http1, max(f.streams, 0)
	if p.Streams > math.MaxInt32 {
		return p, fmt.Errorf("--http2-max-streams-per-connection: %d is more than %d", f.streams, math.MaxInt32)
	}
	if f.minVersion != "" {
		version, ok := tlsVersions[f.minVersion]
		if !ok {
			return p, fmt.Errorf("--tls-min-version: unknown tls version %q; want one of %s", f.minVersion, versionNames())
		}
		p.MinVersion = version
	}
	if p.CipherSuites, err = f.cipherSuites(); err != nil {
		return p, err
	}
	for _, id := range f.curves {
		curve := tls.CurveID(id)
		switch {
		case id <= 0 || id > math.MaxUint16 || strings.HasPrefix(curve.String(), "CurveID("):
			return p, fmt.Errorf("--tls-curve-preferences: %d is not a key exchange of this version of Go; %s is %d", id, tls.X25519, tls.X25519)
		case slices.Contains(p.Curves, curve):
			return p, fmt.Errorf("--tls-curve-preferences: duplicate curve preference %d", id)
		}
		p.Curves = append(p.Curves, curve)
	}
	return p, nil
}

func (f *protocolFlags) cipherSuites() (ids []uint16, err error) {
	all := append(tls.CipherSuites(), tls.InsecureCipherSuites()...)
	for _, name := range f.suites {
		if now, ok := oldNames[name]; ok {
			name = now
		}
		i := slices.IndexFunc(all, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--tls-cipher-suites: Cipher suite %s not supported or doesn't exist; want names such as %s", name, strings.Join(neededSuites, " and "))
		}
		ids = append(ids, all[i].ID)
	}
	serves := func(name string) bool { return slices.Contains(f.suites, name) }
	if len(ids) > 0 && !f.http1 && f.minVersion != "VersionTLS13" && !slices.ContainsFunc(neededSuites, serves) {
		return nil, fmt.Errorf("--tls-cipher-suites: HTTP/2 needs one of %s; add one, or set --disable-http2-serving", strings.Join(neededSuites, " and "))
	}
	return ids, nil
}
