package builtin

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
)

// A certificate for a pod matches the key and the lifetime of the request.
func TestIssuedPodCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		if err != nil {
			t.Fatal(err)
		}
		_, other, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		chain := func(of ed25519.PrivateKey, from time.Time, lifetime time.Duration) string {
			template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(lifetime)}
			der, err := x509.CreateCertificate(rand.Reader, template, template, of.Public(), of)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "\n", `\n`)
		}
		now := time.Now()
		status := func(chain string, from, to, refresh time.Time) string {
			return `{conditions: [{type: Issued, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],
				certificateChain: "` + chain + `", notBefore: "` + from.UTC().Format(time.RFC3339) + `", notAfter: "` + to.UTC().Format(time.RFC3339) + `", beginRefreshAt: "` + refresh.UTC().Format(time.RFC3339) + `"}`
		}
		pcr := func(status string) map[string]any {
			return read(t, `{apiVersion: certificates.k8s.io/v1, kind: PodCertificateRequest, metadata: {name: a, namespace: a}, spec: {signerName: example.com/a, podName: p, podUID: u,
				serviceAccountName: s, serviceAccountUID: v, nodeName: node, nodeUID: w, maxExpirationSeconds: 7200, stubPKCS10Request: `+base64.StdEncoding.EncodeToString(der)+`}, status: `+status+`}`)
		}
		good, long := chain(key, now, time.Hour), chain(key, now, 3*time.Hour)
		old := now.Add(-10 * time.Minute)
		s := definition(t, "podcertificaterequests").Versions[0].Subresource("status")
		for what, tt := range map[string]struct{ status, want string }{
			"good":                 {status(good, now, now.Add(time.Hour), now.Add(30*time.Minute)), ""},
			"for another key":      {status(chain(other, now, time.Hour), now, now.Add(time.Hour), now.Add(30*time.Minute)), "leaf certificate was not issued to the requested public key"},
			"with another time":    {status(good, now.Add(time.Minute), now.Add(time.Hour), now.Add(30*time.Minute)), "must be set to the NotBefore time encoded in the leaf certificate"},
			"of some time ago":     {status(chain(key, old, time.Hour), old, old.Add(time.Hour), now), "must be set to within 5 minutes of kube-apiserver's current time"},
			"good for too long":    {status(long, now, now.Add(3*time.Hour), now.Add(time.Hour)), "leaf certificate lifetime must be <= spec.maxExpirationSeconds (7200)"},
			"good for a minute":    {status(chain(key, now, time.Minute), now, now.Add(time.Minute), now), "leaf certificate lifetime must be >= 1 hour"},
			"refreshed too late":   {status(good, now, now.Add(time.Hour), now.Add(time.Hour)), "must be at least 10 minutes before status.notAfter"},
			"with something after": {status(good+good+`-----BEGIN KEY-----\neA==\n-----END KEY-----\n`, now, now.Add(time.Hour), now.Add(30*time.Minute)), "issued certificate chain must consist entirely of CERTFICATE PEM blocks"},
		} {
			c := &resource.Change{Object: pcr(tt.status), Old: pcr(`{}`), Subresource: "status"}
			s.Revert(t.Context(), c)
			got := strings.Join(messages(s.Validate(t.Context(), c)), "\n")
			if !strings.HasSuffix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("a certificate %s: %s; it should be: %s", what, got, tt.want)
			}
		}
	})
}
