//go:build copied

package testing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	testutil "k8s.io/kubernetes/test/utils"
	"k8s.io/kubernetes/test/utils/ktesting"

	utilcompatibility "k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// ownCertificate creates the client certificate of the server for other API servers.
func ownCertificate(dir string, authority *ProxyCA, o *options.ServerRunOptions) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "misty"}, SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: authority.ProxySigningCert.NotBefore, NotAfter: time.Now().Add(1000 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.ProxySigningCert, key.Public(), authority.ProxySigningKey)
	if err != nil {
		return err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	o.ProxyClientCertFile, o.ProxyClientKeyFile = filepath.Join(dir, "misty-crt.crt"), filepath.Join(dir, "misty-crt.key")
	if err := cert.WriteCert(o.ProxyClientCertFile, testutil.EncodeCertPEM(certificate)); err != nil {
		return err
	}
	return os.WriteFile(o.ProxyClientKeyFile, pem, 0o600)
}

// registry returns the feature gates of this process, to be set by flags.
func registry(t ktesting.TB) compatibility.ComponentGlobalsRegistry {
	r := compatibility.NewComponentGlobalsRegistry()
	gate := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	version := utilcompatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gate.EmulationVersion())
	version.SetMinCompatibilityVersion(gate.MinCompatibilityVersion())
	if err := r.Register(compatibility.DefaultKubeComponent, version, gate); err != nil {
		t.Fatalf("gates: %v", err)
	}
	return r
}

// theirs returns the feature gates of a registry.
func theirs(r compatibility.ComponentGlobalsRegistry) featuregate.MutableVersionedFeatureGate {
	return r.FeatureGateFor(compatibility.DefaultKubeComponent).(featuregate.MutableVersionedFeatureGate)
}
