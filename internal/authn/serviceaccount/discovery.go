package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
)

// Where others find out how to verify tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
)

// A Discovery tells others how to verify tokens. The zero value says nothing.
type Discovery struct{ documents map[string]document }

// A document is one that does not change.
type document struct {
	mediaType string
	content   []byte
}

// NewDiscovery returns what others are told of an Issuer by a server at an address, host and
// port. The error says why nobody can be told anything: the Issuer is not one that others find.
func NewDiscovery(o Options, k *Keys, address string) (*Discovery, error) {
	issuer := o.issuers()[0]
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return &Discovery{}, err
	case u.Scheme != "https":
		return &Discovery{}, fmt.Errorf("issuer URL must use https scheme, got: %s", issuer)
	case u.RawQuery != "":
		return &Discovery{}, fmt.Errorf("issuer URL may not include a query, got: %s", issuer)
	case u.Fragment != "":
		return &Discovery{}, fmt.Errorf("issuer URL may not include a fragment, got: %s", issuer)
	}
	at := o.JWKSURI
	if at == "" {
		at = (&url.URL{Scheme: "https", Host: address, Path: KeysPath}).String()
	}
	set := k.set()
	var algorithms []string
	for _, k := range set.Keys {
		algorithms = append(algorithms, k.Algorithm)
	}
	slices.Sort(algorithms)
	configuration, err := json.Marshal(struct {
		Issuer        string   `json:"issuer"`
		KeysURI       string   `json:"jwks_uri"`
		ResponseTypes []string `json:"response_types_supported"`
		SubjectTypes  []string `json:"subject_types_supported"`
		Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	}{issuer, at, []string{"id_token"}, []string{"public"}, slices.Compact(algorithms)})
	if err != nil {
		return &Discovery{}, err
	}
	keys, err := json.Marshal(set)
	return &Discovery{map[string]document{
		ConfigurationPath: {"application/json", configuration},
		KeysPath:          {"application/jwk-set+json", keys},
	}}, err
}

// set returns the public keys.
func (k *Keys) set() jose.JSONWebKeySet {
	var set jose.JSONWebKeySet
	for _, k := range k.all {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.public, KeyID: k.id, Algorithm: string(k.algorithms[0]), Use: "sig"})
	}
	return set
}

// Paths returns the paths at which there is something.
func (d *Discovery) Paths() []string {
	if d.documents == nil {
		return nil
	}
	return []string{ConfigurationPath, KeysPath}
}

// Owns reports whether a path is one of them.
func (d *Discovery) Owns(path string) bool {
	_, ok := d.documents[strings.TrimSuffix(path, "/")]
	return ok
}

// ServeHTTP implements http.Handler.
func (d *Discovery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	is := d.documents[strings.TrimSuffix(r.URL.Path, "/")]
	err := codec.RouteOne(r, is.mediaType)
	if r.Method != http.MethodGet {
		err = status.NoSuchMethod()
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", is.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=3600") // for so long a key is not to be missed that signs
	_, _ = w.Write(is.content)
}
