package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
)

// A tokenSigner is an external signer of tokens.
type tokenSigner struct {
	externaljwt.UnimplementedExternalJWTSignerServer
	key *ecdsa.PrivateKey
}

const signerKeyID = "of the signer"

func (s *tokenSigner) Sign(_ context.Context, r *externaljwt.SignJWTRequest) (*externaljwt.SignJWTResponse, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: signerKeyID}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, err
	}
	claims, err := base64.RawURLEncoding.DecodeString(r.GetClaims())
	if err != nil {
		return nil, err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return nil, err
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return nil, err
	}
	parts := strings.Split(token, ".")
	return &externaljwt.SignJWTResponse{Header: parts[0], Signature: parts[2]}, nil
}

func (s *tokenSigner) FetchKeys(context.Context, *externaljwt.FetchKeysRequest) (*externaljwt.FetchKeysResponse, error) {
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	return &externaljwt.FetchKeysResponse{
		Keys: []*externaljwt.Key{{KeyId: signerKeyID, Key: der}}, DataTimestamp: timestamppb.Now(), RefreshHintSeconds: 3600,
	}, err
}

func (s *tokenSigner) Metadata(context.Context, *externaljwt.MetadataRequest) (*externaljwt.MetadataResponse, error) {
	return &externaljwt.MetadataResponse{MaxTokenExpirationSeconds: 86400}, nil
}

// listenForServers starts the signer at a socket.
func (s *tokenSigner) listenForServers(t *testing.T) (socket string) {
	t.Helper()
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "signer.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	externaljwt.RegisterExternalJWTSignerServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return socket
}

// An external signer signs the tokens of service accounts. They are accepted, and discovery has its
// key.
func TestSigningEndpoint(t *testing.T) {
	var signer tokenSigner
	socket := signer.listenForServers(t)
	a := start(t, Options{ServiceAccounts: serviceaccount.Options{SigningEndpoint: socket}})
	defer stop(t, a)
	must(t, a, "POST", inDefault+"/serviceaccounts", robot)
	token := tokenOf(t, a, "{}")
	header, err := base64.RawURLEncoding.DecodeString(token[:strings.Index(token, ".")])
	if err != nil || !strings.Contains(string(header), signerKeyID) {
		t.Error("the token is not by the signer:", string(header), err)
	}
	if !counts(t, a, token) {
		t.Error("the token does not count")
	}
	if keys := must(t, a, "GET", "/openid/v1/jwks", ""); !strings.Contains(keys, signerKeyID) {
		t.Error(keys)
	}
	metrics := must(t, a, "GET", "/metrics", "")
	for _, want := range []string{
		`apiserver_externaljwt_sign_request_total{code="OK"} 1`,
		`apiserver_externaljwt_fetch_keys_request_total{code="OK"} 1`,
		`apiserver_externaljwt_request_duration_seconds_count{code="OK",method="/v1.ExternalJWTSigner/Metadata"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Error("missing in /metrics:", want)
		}
	}
}
