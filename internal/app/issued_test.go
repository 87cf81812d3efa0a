package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// Metrics count issued certificates of requests with expirationSeconds, and those with exactly that
// duration.
func TestIssuedDurations(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "jane"}
	requested, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	do := func(method, path, contentType, body string, want int) {
		t.Helper()
		if code, answer := ask(t, c, method, a.URL()+path, contentType, body); code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}
	for name, valid := range map[string]time.Duration{"kept": time.Hour, "longer": 24 * time.Hour} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject, NotBefore: time.Now(), NotAfter: time.Now().Add(valid)}
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		do("POST", path, "application/json", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"request":%q,"signerName":"example.com/own","usages":["client auth"],"expirationSeconds":3600}}`,
			name, encode("CERTIFICATE REQUEST", requested)), 201)
		do("PATCH", path+"/"+name+"/approval", "application/merge-patch+json", `{"status":{"conditions":[{"type":"Approved","status":"True"}]}}`, 200)
		issue := fmt.Sprintf(`{"status":{"certificate":%q}}`, encode("CERTIFICATE", certificate))
		do("PATCH", path+"/"+name+"/status?dryRun=All", "application/merge-patch+json", issue, 200)
		do("PATCH", path+"/"+name+"/status", "application/merge-patch+json", issue, 200)
		do("PATCH", path+"/"+name, "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`, 200)
	}
	_, metrics := ask(t, c, "GET", a.URL()+"/metrics", "", "")
	for _, want := range []string{"requested_duration_total 2", "honored_duration_total 1"} {
		name, n, _ := strings.Cut(want, " ")
		if want := `apiserver_certificates_registry_csr_` + name + `{signerName="other"} ` + n; !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
}
