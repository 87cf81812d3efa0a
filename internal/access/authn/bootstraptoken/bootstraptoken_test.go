package bootstraptoken

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/object/request"
)

const (
	id      = "abcdef"
	private = "0123456789abcdef"
	name    = "bootstrap-token-abcdef"
)

// stored returns a Secret with a valid token, modified by change.
func stored(t *testing.T, change func(metadata map[string]any, data map[string][]byte) (typ string)) []byte {
	t.Helper()
	metadata := map[string]any{"name": name, "namespace": Namespace}
	data := map[string][]byte{idKey: []byte(id), secretKey: []byte(private), authenticationKey: []byte("true")}
	typ := Type
	if change != nil {
		if other := change(metadata, data); other != "" {
			typ = other
		}
	}
	out, err := json.Marshal(map[string]any{"metadata": metadata, "type": typ, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// with sets one key of the data; "" removes it.
func with(key, value string) func(map[string]any, map[string][]byte) string {
	return func(_ map[string]any, data map[string][]byte) string {
		data[key] = []byte(value)
		if value == "" {
			delete(data, key)
		}
		return ""
	}
}

func TestBootstrapToken(t *testing.T) {
	user := func(groups ...string) *request.User {
		return &request.User{Name: "system:bootstrap:abcdef", Groups: groups}
	}
	good := id + "." + private
	for _, tt := range []struct {
		name, token string
		change      func(map[string]any, map[string][]byte) string
		want        *request.User // nil is a rejection
	}{
		{"good", good, nil, user("system:bootstrappers")},
		{"groups, in order and once", good, with(groupsKey, "system:bootstrappers:b,system:bootstrappers:a:c-d,system:bootstrappers:b"),
			user("system:bootstrappers", "system:bootstrappers:a:c-d", "system:bootstrappers:b")},
		{"not expired", good, with(expirationKey, "2000-01-01T00:00:01Z"), user("system:bootstrappers")},
		{"expired now", good, with(expirationKey, "2000-01-01T00:00:00Z"), nil},
		{"expired in another zone", good, with(expirationKey, "2000-01-01T00:30:00+01:00"), nil},
		{"expiration that cannot be read", good, with(expirationKey, "tomorrow"), nil},
		{"another usage", good, with(authenticationKey, "false"), nil},
		{"usage in capitals", good, with(authenticationKey, "True"), nil},
		{"no usage", good, with(authenticationKey, ""), nil},
		{"a group outside system:bootstrappers", good, with(groupsKey, "system:masters"), nil},
		{"one bad group among good ones", good, with(groupsKey, "system:bootstrappers:a,system:masters"), nil},
		{"a group with a line feed", good, with(groupsKey, "system:bootstrappers:a\n"), nil},
		{"an empty group", good, with(groupsKey, "system:bootstrappers:a,"), nil},
		{"a group in capitals", good, with(groupsKey, "system:bootstrappers:A"), nil},
		{"another secret", id + ".0123456789abcdeg", nil, nil},
		{"no secret stored", good, with(secretKey, ""), nil},
		{"another id stored", good, with(idKey, "fedcba"), nil},
		{"no id stored", good, with(idKey, ""), nil},
		{"another type", good, func(map[string]any, map[string][]byte) string { return "Opaque" }, nil},
		{"being deleted", good, func(m map[string]any, _ map[string][]byte) string {
			m["deletionTimestamp"] = "2000-01-01T00:00:00Z"
			return ""
		}, nil},
	} {
		synctest.Test(t, func(t *testing.T) { // it is the year 2000
			secret := stored(t, tt.change)
			var logged bytes.Buffer
			tokens := &Tokens{
				Read: func(_ context.Context, asked string) ([]byte, error) {
					if asked != name {
						t.Errorf("%s: asked for %s", tt.name, asked)
					}
					return secret, nil
				},
				Log: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			a, ok, err := tokens.AuthenticateToken(t.Context(), tt.token, nil)
			if err != nil || ok != (tt.want != nil) || ok && !reflect.DeepEqual(a.User, tt.want) {
				t.Errorf("%s: %+v, %v, want %+v", tt.name, a, err, tt.want)
			}
			if ok == (logged.Len() > 0) || strings.Contains(logged.String(), private) {
				t.Errorf("%s: logged %s", tt.name, &logged)
			}
		})
	}
}

// mayAdd agrees with groupPattern.
func TestGroups(t *testing.T) {
	pattern := regexp.MustCompile(groupPattern)
	for _, end := range []string{"", "a", "-", ":", "a-", "a:", "-a", "a:b-c", "A", "a_b", "a.b", "ä", "a\n", "0", strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("-", 255) + "a", strings.Repeat("-", 256) + "a", ":::a"} {
		for _, begin := range []string{"system:bootstrappers:", "system:bootstrappers", "System:bootstrappers:", " system:bootstrappers:", ""} {
			if name := begin + end; mayAdd(name) != pattern.MatchString(name) {
				t.Errorf("%q: %v", name, mayAdd(name))
			}
		}
	}
}

// A malformed bootstrap token causes no read of a Secret.
func TestMalformed(t *testing.T) {
	tokens := &Tokens{Log: slog.Default(), Read: func(_ context.Context, name string) ([]byte, error) {
		t.Errorf("asked for %s", name)
		return nil, nil
	}}
	for _, token := range []string{"", ".", "abcdef", "abcdef.", "abcde.0123456789abcdef", "abcdefg.0123456789abcdef", "ABCDEF.0123456789abcdef",
		"abcdef.0123456789ABCDEF", "abcdef.0123456789abcdef0", "abcdef.0123456789abcdef\n", "ab/../.0123456789abcdef", "abcdef.0123456789abcd.f",
		"ab%2fcd.0123456789abcdef", " abcdef.0123456789abcdef", "äbcde.0123456789abcdef"} {
		if a, ok, err := tokens.AuthenticateToken(t.Context(), token, nil); ok || err != nil {
			t.Errorf("%q: %+v, %v", token, a, err)
		}
	}
}

// A missing Secret is no error; a failing store is one.
func TestStore(t *testing.T) {
	for _, tt := range []struct {
		data []byte
		err  error
		want string
	}{
		{nil, nil, "<nil>"},
		{nil, errors.New("no store"), "no store"},
		{[]byte("{"), nil, "the stored Secret kube-system/bootstrap-token-abcdef cannot be read"},
	} {
		tokens := &Tokens{Log: slog.Default(), Read: func(context.Context, string) ([]byte, error) { return tt.data, tt.err }}
		_, ok, err := tokens.AuthenticateToken(t.Context(), id+"."+private, nil)
		if got := "<nil>"; ok || err == nil && tt.want != got || err != nil && err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}
