package serviceaccount

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-jose/go-jose/v4"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Paths of the OpenID Connect discovery of the issuer.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
)

// Discovery serves the issuer's discovery documents. The zero value serves none.
type Discovery struct {
	issuer, keysAt string
	keys           Keys
	made           atomic.Pointer[documents]
}

// documents are the responses by path, for one generation of keys.
type documents struct {
	generation uint64
	at         map[string]document
}

type document struct {
	mediaType string
	content   []byte
}

// NewDiscovery returns the Discovery of the Issuer for a server at an address, host:port. An error
// reports an issuer that cannot be discovered.
func NewDiscovery(o Options, k Keys, address string) (*Discovery, error) {
	issuer := o.IssuersOf()[0]
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
	return &Discovery{issuer: issuer, keysAt: at, keys: k}, nil
}

// documents returns the documents of the present keys. They are generated once per generation.
func (d *Discovery) documents() (map[string]document, error) {
	generation := d.keys.generation()
	if made := d.made.Load(); made != nil && made.generation == generation {
		return made.at, nil
	}
	set := d.set()
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
	}{d.issuer, d.keysAt, []string{"id_token"}, []string{"public"}, slices.Compact(algorithms)})
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	made := &documents{generation, map[string]document{
		ConfigurationPath: {"application/json", configuration},
		KeysPath:          {"application/jwk-set+json", keys},
	}}
	d.made.Store(made)
	return made.at, nil
}

// set returns the public keys as a JSON web key set.
func (d *Discovery) set() jose.JSONWebKeySet {
	var set jose.JSONWebKeySet
	all, _ := d.keys.published()
	for _, k := range all {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.public, KeyID: k.id, Algorithm: string(k.algorithms[0]), Use: "sig"})
	}
	return set
}

// Paths returns the served paths.
func (d *Discovery) Paths() []string {
	if d.keys == nil {
		return nil
	}
	return []string{ConfigurationPath, KeysPath}
}

// Owns reports whether the path is served.
func (d *Discovery) Owns(path string) bool {
	return slices.Contains(d.Paths(), strings.TrimSuffix(path, "/"))
}

// ServeHTTP implements http.Handler.
func (d *Discovery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all, err := d.documents()
	is := all[strings.TrimSuffix(r.URL.Path, "/")]
	if err == nil {
		err = codec.RouteOne(r, is.mediaType)
	}
	if r.Method != http.MethodGet {
		err = status.NoSuchMethod()
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", is.mediaType)
	_, age := d.keys.published()
	w.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(age.Seconds())))
	_, _ = w.Write(is.content)
}
