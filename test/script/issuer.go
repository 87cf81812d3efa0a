package script

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

type issuerKey struct{}

// issuer is the OpenID Connect issuer that a script may have.
type issuer struct {
	server *httptest.Server
	key    *ecdsa.PrivateKey
	found  chan struct{} // closed when somebody has asked for the keys
}

// issuerCommand is the command issuer.
func issuerCommand(ts *testscript.TestScript, neg bool, args []string) {
	i := ts.Value(issuerKey{}).(*issuer)
	switch {
	case len(args) == 1 && args[0] == "start" && i.server == nil:
		usage(ts, neg, true, "issuer start")
		i.start(ts)
	case len(args) == 2 && args[0] == "token" && i.server != nil:
		usage(ts, neg, true, "issuer token FILE")
		<-i.found
		fmt.Fprintln(ts.Stdout(), i.token(ts, ts.ReadFile(args[1])))
	default:
		ts.Fatalf("issuer %q: see the comment of the package", args)
	}
}

func (i *issuer) start(ts *testscript.TestScript) {
	var err error
	i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	point, err := i.key.PublicKey.Bytes() // 4, x, y
	ts.Check(err)
	size := len(point) / 2
	i.found = make(chan struct{})
	ask := sync.OnceFunc(func() { close(i.found) })
	i.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/keys" {
			fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","use":"sig","kid":"k","x":%q,"y":%q}]}`, encode(point[1:1+size]), encode(point[1+size:]))
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.server.URL, i.server.URL+"/keys")
		ask()
	}))
	ts.Defer(i.server.Close)
	ca, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})))
	ts.Check(err)
	ts.Setenv("ISSUER", i.server.URL)
	ts.Setenv("ISSUER_CA", string(ca))
}

// token is one with claims, JSON, that is good for an hour.
func (i *issuer) token(ts *testscript.TestScript, text string) string {
	claims := map[string]any{"iss": i.server.URL, "exp": time.Now().Add(time.Hour).Unix()}
	ts.Check(json.Unmarshal([]byte(text), &claims))
	payload, err := json.Marshal(claims)
	ts.Check(err)
	signed := encode([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	ts.Check(err)
	const size = 32
	return signed + "." + encode(append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...))
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
