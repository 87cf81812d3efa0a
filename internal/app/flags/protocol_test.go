package flags

import (
	"crypto/tls"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/server"
)

// parseServe returns the options of serve with flags.
func parseServe(t *testing.T, given string) (app.Options, error) {
	t.Helper()
	var f Serve
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(flags)
	if err := flags.Parse(strings.Fields(given)); err != nil {
		t.Fatal(err)
	}
	return f.Options(slog.New(slog.DiscardHandler))
}

func TestProtocol(t *testing.T) {
	const aes, chacha = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"
	for given, want := range map[string]server.Protocol{
		"":                                          {},
		"--tls-min-version=VersionTLS13":            {MinVersion: tls.VersionTLS13},
		"--tls-min-version=VersionTLS10":            {MinVersion: tls.VersionTLS10},
		"--tls-curve-preferences=29,4588":           {Curves: []tls.CurveID{tls.X25519, tls.X25519MLKEM768}},
		"--disable-http2-serving":                   {HTTP1: true},
		"--tls-cipher-suites=" + chacha + "," + aes: {CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
		"--tls-cipher-suites=" + chacha + " --disable-http2-serving":           {HTTP1: true, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}},
		"--tls-cipher-suites=" + chacha + " --tls-min-version=VersionTLS13":    {MinVersion: tls.VersionTLS13, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}},
		"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA --disable-http2-serving": {HTTP1: true, CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}},
		"--http2-max-streams-per-connection=7":                                 {Streams: 7},
		"--http2-max-streams-per-connection=-1":                                {},
	} {
		if o, err := parseServe(t, given); err != nil || !reflect.DeepEqual(o.Protocol, want) {
			t.Errorf("%s: %+v, %v; want %+v", given, o.Protocol, err, want)
		}
	}
	for given, want := range map[string]string{
		"--tls-min-version=1.3":         `unknown tls version "1.3"; want one of VersionTLS10, `,
		"--tls-cipher-suites=AES":       "Cipher suite AES not supported or doesn't exist",
		"--tls-cipher-suites=" + chacha: "HTTP/2 needs one of " + aes,
		"--tls-curve-preferences=0":     "0 is not a key exchange",
		"--tls-curve-preferences=70000": "70000 is not a key exchange",
		"--tls-curve-preferences=29,29": "duplicate curve preference 29",
		"--request-timeout=0":           "--request-timeout: 0s is not positive",
		"--request-timeout=-1s":         "--request-timeout: -1s is not positive",
	} {
		if _, err := parseServe(t, given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
	if o, err := parseServe(t, "--request-timeout=7s"); err != nil || o.Timeout != 7*time.Second {
		t.Errorf("the timeout is %v, %v", o.Timeout, err)
	}
}
