package certificates_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/certificates"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/internal/object/request"
)

// rights are the permissions of a user: a verb and a signer.
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.Group == "certificates.k8s.io" && a.Resource == "signers" && r[a.Verb+" "+a.Name] {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func world(t *testing.T, may ...string) *admissiontest.World {
	r := rights{}
	for _, m := range may {
		r[m] = true
	}
	w := admissiontest.New(t, func(*admissiontest.World) []any {
		return []any{
			&certificates.Approval{Authorizer: r}, &certificates.Signing{Authorizer: r},
			&certificates.Attest{Authorizer: r}, certificates.SubjectRestriction{},
		}
	})
	w.User = &request.User{Name: "jane"}
	return w
}

// asked returns a CertificateSigningRequest.
func asked(t *testing.T, signer, organization string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{organization}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: r}, spec: {signerName: " + signer + ", usages: [client auth], request: " + text + "}}"
}

// Approval and signing need a permission for the signer.
func TestSigners(t *testing.T) {
	const (
		approve = "approval"
		sign    = "status"
		decided = `status: {conditions: [{type: Approved, status: "True", reason: r}]}`
		failed  = `status: {conditions: [{type: Failed, status: "True", reason: r}]}`
	)
	const forbidden = `certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to `
	tests := []struct{ name, may, by, change, want string }{
		{"approves for the signer", "approve example.com/s", approve, decided, ""},
		{"approves for all of the domain", "approve example.com/*", approve, decided, ""},
		{"approves for another one", "approve example.com/t", approve, decided, forbidden + `approve requests with signerName "example.com/s"`},
		{"may sign only", "sign example.com/s", approve, decided, forbidden + `approve requests with signerName "example.com/s"`},
		{"signs", "sign example.com/s", sign, failed, ""},
		{"may approve only", "approve example.com/s", sign, failed, forbidden + `sign requests with signerName "example.com/s"`},
		{"signs nothing", "", sign, `status: {}`, ""},
		{"is not asked for a label", "", "", `kind: CertificateSigningRequest`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := world(t, test.may)
			w.Have(asked(t, "example.com/s", "devs"))
			change := test.change
			if test.by != "" {
				change = "kind: CertificateSigningRequest, " + change
			}
			_, err := w.Update("{apiVersion: certificates.k8s.io/v1, metadata: {name: r}, "+change+"}", test.by)
			if got := said(err); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Client certificates for system:masters are rejected.
func TestSubjects(t *testing.T) {
	const masters = `certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`
	for _, test := range []struct{ signer, organization, want string }{
		{"kubernetes.io/kube-apiserver-client", "system:masters", masters},
		{"kubernetes.io/kube-apiserver-client", "devs", ""},
		{"example.com/s", "system:masters", ""},
	} {
		_, err := world(t).Create(asked(t, test.signer, test.organization))
		if got := said(err); got != test.want {
			t.Errorf("%s %s: %s\nwant\n%s", test.signer, test.organization, got, test.want)
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Writes of a bundle need permission to attest for its signer, unless only fields of the garbage
// collector change.
func TestBundles(t *testing.T) {
	roots, err := json.Marshal(string(pkitest.Authority(t, "roots").CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	bundle := func(metadata, spec string) string {
		return "{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {" + metadata + "}, spec: {" + spec + " trustBundle: " + string(roots) + "}}"
	}
	const signed = "signerName: example.com/s,"
	const forbidden = `clustertrustbundles.certificates.k8s.io "example.com:s:a" is forbidden: user not permitted to attest for signerName "example.com/s"`
	tests := []struct{ name, may, text, change, want string }{
		{"of no signer", "", bundle("name: a", ""), "", ""},
		{"of a signer for which the user may attest", "attest example.com/s", bundle("name: 'example.com:s:a'", signed), "", ""},
		{"and of another one", "attest example.com/t", bundle("name: 'example.com:s:a'", signed), "", forbidden},
		{"finalizers", "", bundle("name: 'example.com:s:a'", signed), "finalizers: [example.com/f]", ""},
		{"labels", "", bundle("name: 'example.com:s:a'", signed), "labels: {a: b}", forbidden},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := world(t, test.may)
			write := func() error { _, err := w.Create(test.text); return err }
			if test.change != "" {
				user := w.User
				w.User = nil // the server itself
				w.Have(test.text)
				w.User = user
				write = func() error {
					_, err := w.Update("{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: 'example.com:s:a', "+test.change+"}}", "")
					return err
				}
			}
			if got := said(write()); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}
