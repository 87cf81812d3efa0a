package builtin

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// signed returns a certificate request in DER, and as the value of its field.
func signed(t *testing.T) (der []byte, field string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der, inPEM("CERTIFICATE REQUEST", der)
}

func inPEM(kind string, der []byte) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// The user of a certificate request is the user of the HTTP request.
func TestRequestsAreOfTheirUser(t *testing.T) {
	_, field := signed(t)
	d := definition(t, "certificatesigningrequests")
	ctx := request.With(t.Context(), &request.Request{User: &request.User{Name: "jane", Groups: []string{"dev"}, Extra: map[string][]string{"k": {"v"}}}})
	csr := func(spec string) map[string]any {
		return read(t, `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: a}, spec: `+spec+`}`)
	}
	obj := csr(`{request: ` + field + `, signerName: example.com/a, usages: [any], username: admin, uid: u, groups: [system:masters]}`)
	d.Versions[0].Revert(ctx, &resource.Change{Object: obj})
	want := csr(`{request: ` + field + `, signerName: example.com/a, usages: [any], username: jane, groups: [dev], extra: {k: [v]}}`)
	same(t, "spec", obj["spec"], want["spec"])

	changed := csr(`{signerName: example.com/b}`)
	d.Versions[0].Revert(ctx, &resource.Change{Object: changed, Old: obj})
	same(t, "spec after an update", changed["spec"], want["spec"])
}

func TestSigningRequests(t *testing.T) {
	der, good := signed(t)
	forged := inPEM("CERTIFICATE REQUEST", bytes.Replace(der, der[len(der)-8:], make([]byte, 8), 1))
	for _, tt := range []struct {
		spec string
		want []string
	}{
		{`{request: ` + good + `, signerName: example.com/a, usages: [any], expirationSeconds: 600}`, nil},
		{`{request: ` + good + `, signerName: example.com/a}`, []string{"spec.usages: Required value"}},
		{`{request: ` + good + `, signerName: kubernetes.io/legacy-unknown, usages: [any, any]}`, []string{
			`spec.usages[1]: Duplicate value: "any"`,
			`spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version`,
		}},
		{`{request: ` + good + `, signerName: example.com/a, usages: [any], expirationSeconds: 599}`, []string{
			"spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
		}},
		{`{request: ` + inPEM("CERTIFICATE", der) + `, signerName: example.com/a, usages: [any]}`, []string{"PEM block type must be CERTIFICATE REQUEST"}},
		{`{request: ` + forged + `, signerName: example.com/a, usages: [any]}`, []string{"x509: Ed25519 verification failure"}},
	} {
		obj := read(t, `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: a}, spec: `+tt.spec+`}`)
		_, errs := write(t, definition(t, "certificatesigningrequests"), obj, nil)
		got := messages(errs)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %d errors: %q", tt.spec, len(got), got)
			continue
		}
		for i := range got {
			if !strings.HasSuffix(got[i], tt.want[i]) {
				t.Errorf("%s: error %d is\n%s\ninstead of\n%s", tt.spec, i, got[i], tt.want[i])
			}
		}
	}
}

// The subresource approval cannot sign, and status cannot approve.
func TestApproval(t *testing.T) {
	_, good := signed(t)
	csr := func(status string) map[string]any {
		return read(t, `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: a},
			spec: {request: `+good+`, signerName: example.com/a, usages: [any]}, status: `+status+`}`)
	}
	const (
		approved = `{type: Approved, status: "True", lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}`
		denied   = `{type: Denied, status: "True"}`
	)
	d := definition(t, "certificatesigningrequests")
	for _, tt := range []struct {
		through, old, in string
		want             []string
	}{
		{"approval", `{}`, `{conditions: [` + approved + `], certificate: eA==}`, nil}, // not writable through it
		{"approval", `{conditions: [` + approved + `]}`, `{}`, []string{`status.conditions: Forbidden: updates may not remove a condition of type "Approved"`}},
		{"approval", `{}`, `{conditions: [{type: Approved, status: "False"}]}`, []string{`status.conditions[0].status: Unsupported value: "False": supported values: "True"`}},
		{"approval", `{conditions: [` + approved + `]}`, `{conditions: [` + approved + `, ` + denied + `]}`, []string{
			`status.conditions: Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": must specify at most one of: ` +
				"`conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`",
		}},
		{"status", `{}`, `{conditions: [` + approved + `]}`, []string{`status.conditions: Forbidden: updates may not add a condition of type "Approved"`}},
		{"status", `{conditions: [` + approved + `]}`, `{conditions: [` + approved + `], certificate: eA==}`, []string{
			`status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block`,
		}},
		{"status", `{certificate: eA==}`, `{certificate: eQ==}`, []string{"status.certificate: Forbidden: updates may not modify existing certificate content"}},
	} {
		c := &resource.Change{Object: csr(tt.in), Old: csr(tt.old), Subresource: tt.through}
		d.Versions[0].Subresource(tt.through).Revert(t.Context(), c)
		same(t, tt.through+" "+tt.in, messages(d.Validate(t.Context(), c)), tt.want)
	}

	c := &resource.Change{Object: csr(`{conditions: [` + denied + `]}`), Old: csr(`{}`), Subresource: "approval"}
	d.Versions[0].Subresource("approval").Revert(t.Context(), c)
	condition := c.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)
	if condition["lastUpdateTime"] == nil || condition["lastTransitionTime"] != condition["lastUpdateTime"] {
		t.Errorf("a condition without times is %v", condition)
	}
}

// The name of a bundle begins with the name of its signer.
func TestTrustBundles(t *testing.T) {
	const anchors = "spec.trustBundle: Invalid value: \"<value omitted>\": "
	for _, tt := range []struct {
		name, spec string
		want       []string
	}{
		{"a", `{}`, []string{anchors + "at least one trust anchor must be provided"}},
		{"a", `{trustBundle: "-----BEGIN KEY-----\neA==\n-----END KEY-----\n-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"}`, []string{
			anchors + "entry 0 has bad block type: KEY", anchors + "entry 1 does not parse as X.509",
		}},
		{"a", `{signerName: example.com/s}`, []string{
			`metadata.name: Invalid value: "a": ClusterTrustBundle for signerName example.com/s must be named with prefix example.com:s:`,
			anchors + "at least one trust anchor must be provided",
		}},
		{"example.com:s:a", `{signerName: example.com/s}`, []string{anchors + "at least one trust anchor must be provided"}},
	} {
		obj := read(t, `{apiVersion: certificates.k8s.io/v1, kind: ClusterTrustBundle, metadata: {name: "`+tt.name+`"}, spec: `+tt.spec+`}`)
		_, errs := write(t, definition(t, "clustertrustbundles"), obj, nil)
		same(t, tt.name+" "+tt.spec, messages(errs), tt.want)
	}
}

// A PodCertificateRequest has one final condition and an immutable spec.
func TestPodCertificateRequests(t *testing.T) {
	der, _ := signed(t)
	pcr := func(spec, status string) map[string]any {
		return read(t, `{apiVersion: certificates.k8s.io/v1, kind: PodCertificateRequest, metadata: {name: a, namespace: a}, spec: {signerName: example.com/a, podName: p, podUID: u,
			serviceAccountName: s, serviceAccountUID: v, nodeName: node, nodeUID: w, `+spec+`}, status: `+status+`}`)
	}
	stub := `maxExpirationSeconds: 86400, stubPKCS10Request: ` + base64.StdEncoding.EncodeToString(der)
	d := definition(t, "podcertificaterequests")
	for spec, want := range map[string][]string{
		stub:                      nil,
		`stubPKCS10Request: eA==`: {"spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"},
		`maxExpirationSeconds: 60, stubPKCS10Request: ` + base64.StdEncoding.EncodeToString(der): {
			"spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]",
		},
		`maxExpirationSeconds: 3600`: {"spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"},
	} {
		_, errs := write(t, d, pcr(spec, `{}`), nil)
		same(t, spec, messages(errs), want)
	}

	const denied = `{conditions: [{type: Denied, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
	status := d.Versions[0].Subresource("status")
	for _, tt := range []struct{ old, in, want string }{
		{`{}`, denied, ""},
		{denied, `{}`, "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"},
		{`{}`, `{certificateChain: x}`, `status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"`},
		{`{}`, strings.Replace(denied, "Denied", "Issued", 1), `status.certificateChain: Invalid value: "": issued certificate chain must contain at least one certificate`},
		{`{}`, strings.Replace(denied, "True", "False", 1), `status.conditions.[0].status: Unsupported value: "False": supported values: "True"`},
	} {
		c := &resource.Change{Object: pcr(stub, tt.in), Old: pcr(stub, tt.old), Subresource: "status"}
		status.Revert(t.Context(), c)
		same(t, tt.in, strings.Join(messages(status.Validate(t.Context(), c)), "\n"), tt.want)
		same(t, "name", object.Name(c.Object), "a")
	}
}
