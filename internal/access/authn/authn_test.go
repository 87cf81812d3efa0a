package authn

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

const tokenFile = `admin-token,admin,uid1,"system:masters"
user-token,bob,uid2,"devs,ops"
lonely-token,eve,uid3
,tokenless,uid4
user-token-2,bob,uid2,""
twice,first,1
twice,second,2
`

func tokenFileOf(t testing.TB) *TokenFile {
	t.Helper()
	file, _, err := ReadTokenFile(strings.NewReader(tokenFile), "tokens.csv")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// bearing authenticates by the tokens of the file. Requests without a token are anonymous.
func bearing(t testing.TB) Authenticator {
	t.Helper()
	tokens := &Tokens{}
	tokens.Use(tokenFileOf(t))
	return WithoutCredentials(OrAnonymous(Chain{Bearer{tokens}}, Anonymous{Enabled: true}))
}

func TestTokenFile(t *testing.T) {
	tokens, warnings, err := ReadTokenFile(strings.NewReader(tokenFile), "tokens.csv")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"empty token has been found in token file 'tokens.csv', record number '4'",
		"duplicate token has been found in token file 'tokens.csv', record number '7'"}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
	for token, want := range map[string]*request.User{
		"admin-token":  {Name: "admin", UID: "uid1", Groups: []string{request.Masters, request.Authenticated}},
		"user-token":   {Name: "bob", UID: "uid2", Groups: []string{"devs", "ops", request.Authenticated}},
		"lonely-token": {Name: "eve", UID: "uid3", Groups: []string{request.Authenticated}},
		"user-token-2": {Name: "bob", UID: "uid2", Groups: []string{"", request.Authenticated}},
		"twice":        {Name: "second", UID: "2", Groups: []string{request.Authenticated}},
	} {
		if a, ok, err := tokens.AuthenticateToken(t.Context(), token, nil); !ok || err != nil || !reflect.DeepEqual(a.User, want) {
			t.Errorf("%s: %+v, %v, want %+v", token, a, err, want)
		}
	}
}

// Errors in a token file do not disclose its content.
func TestTokenFileErrors(t *testing.T) {
	for file, want := range map[string]string{
		"secret,user":          "token file 'f' must have at least 3 columns (token, user name, user uid), found 2",
		"a,b,c\nsecret,\"user": "token file 'f': parse error on line 2, column 13: extraneous or missing \" in quoted-field",
	} {
		if _, _, err := ReadTokenFile(strings.NewReader(file), "f"); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
	if _, _, err := LoadTokenFile(t.TempDir() + "/none"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func get(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/api", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestBearerHeader(t *testing.T) {
	for _, tt := range []struct {
		header, user string
		err          bool
		warnings     int
	}{
		{"Bearer user-token", "bob", false, 0},
		{"bearer user-token", "bob", false, 0},
		{" BEARER user-token ", "bob", false, 0},
		{"Bearer user-token more", "bob", false, 0},
		{"Bearer wrong", "", true, 0},
		{"Bearer  user-token", request.Anonymous, false, 1},
		{"Bearer", request.Anonymous, false, 0},
		{"Bearer ", request.Anonymous, false, 0},
		{"Basic user-token", request.Anonymous, false, 0},
		{"", request.Anonymous, false, 0},
	} {
		r := get("Authorization", tt.header)
		if got := len(Warnings(r)); got != tt.warnings {
			t.Errorf("%q: %d warnings", tt.header, got)
		}
		u, ok, err := bearing(t).Authenticate(r)
		if (err != nil) != tt.err || ok == tt.err || !tt.err && u.Name != tt.user {
			t.Errorf("%q: %+v, %v, %v", tt.header, u, ok, err)
		}
		if ok && u.Name == "bob" && r.Header.Get("Authorization") != "" {
			t.Errorf("%q: the token is still in the request", tt.header)
		}
	}
}

func TestBearerSubprotocol(t *testing.T) {
	token := func(s string) string { return bearerProtocol + base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct {
		name      string
		protocols []string
		user      string
		left      string
	}{
		{"with another", []string{token("user-token") + ", v4.channel.k8s.io"}, "bob", "v4.channel.k8s.io"},
		{"in several headers", []string{"a, b", token("user-token")}, "bob", "a,b"},
		{"none", []string{"v4.channel.k8s.io"}, request.Anonymous, "v4.channel.k8s.io"},
		{"empty", []string{bearerProtocol + ", a"}, request.Anonymous, bearerProtocol + ", a"},
		{"alone", []string{token("user-token")}, "", ""},
		{"two", []string{token("user-token"), token("admin-token"), "a"}, "", ""},
		{"wrong", []string{token("wrong"), "a"}, "", ""},
		{"not base64", []string{bearerProtocol + "!!!", "a"}, "", ""},
		{"not UTF-8", []string{token("\xff"), "a"}, "", ""},
	} {
		r := get("Upgrade", "WebSocket", "Connection", "keep-alive, Upgrade")
		r.Header[subprotocols] = tt.protocols
		u, _, err := bearing(t).Authenticate(r)
		if tt.user == "" {
			if err == nil {
				t.Errorf("%s: %+v, want an error", tt.name, u)
			}
			continue
		}
		if err != nil || u.Name != tt.user || r.Header.Get(subprotocols) != tt.left {
			t.Errorf("%s: %+v, %v, left with %q", tt.name, u, err, r.Header.Get(subprotocols))
		}
	}
	if u, _, _ := bearing(t).Authenticate(get(subprotocols, token("user-token")+",a")); u.Name != request.Anonymous {
		t.Errorf("a subprotocol without a websocket made the client %s", u.Name)
	}
}

type fixed struct {
	u   *request.User
	err error
}

func (f fixed) Authenticate(*http.Request) (*request.User, bool, error) {
	return f.u, f.u != nil, f.err
}

// One valid credential is enough. Without one, an invalid credential fails the request.
func TestChain(t *testing.T) {
	good, bad, none := fixed{u: &request.User{Name: "eve", Groups: []string{"g"}}}, fixed{err: errors.New("bad")}, fixed{}
	for _, tt := range []struct {
		name string
		c    Chain
		want *request.User
	}{
		{"nothing to ask", nil, anonymous},
		{"no credentials", Chain{none, none}, anonymous},
		{"good after bad", Chain{bad, good}, &request.User{Name: "eve", Groups: []string{"g", request.Authenticated}}},
		{"the first counts", Chain{good, fixed{u: &request.User{Name: "other"}}}, &request.User{Name: "eve", Groups: []string{"g", request.Authenticated}}},
		{"bad", Chain{none, bad}, nil},
		{"groups as given", Chain{fixed{u: &request.User{Name: "x", Groups: []string{request.Unauthenticated}}}}, &request.User{Name: "x", Groups: []string{request.Unauthenticated}}},
		{"anonymous by name", Chain{fixed{u: &request.User{Name: request.Anonymous}}}, &request.User{Name: request.Anonymous}},
	} {
		u, ok, err := OrAnonymous(tt.c, Anonymous{Enabled: true}).Authenticate(get())
		if !reflect.DeepEqual(u, tt.want) || ok != (tt.want != nil) || (err != nil) != (tt.want == nil) {
			t.Errorf("%s: %+v, %v, %v, want %+v", tt.name, u, ok, err, tt.want)
		}
	}
	if len(good.u.Groups) != 1 {
		t.Error("the user was changed")
	}
}

// The messages for unauthenticated requests are those of kube-apiserver.
func TestUnauthorized(t *testing.T) {
	s := status.Of(status.Unauthorized())
	if s.Code != 401 || s.Message != "Unauthorized" || s.Reason != "Unauthorized" || s.Details != nil {
		t.Errorf("%+v", s)
	}
}
