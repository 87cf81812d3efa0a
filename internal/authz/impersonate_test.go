package authz

import (
	"net/http"
	"testing"

	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
)

// Nobody may ask to be treated as somebody else, whoever they are. Only a user's
// name can be asked for alone.
func TestRefuseImpersonation(t *testing.T) {
	const forbidden = `users "nobody" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope: ` + notImpersonated
	for _, tt := range []struct {
		headers http.Header
		code    int32
		message string
	}{
		{http.Header{}, 0, ""},
		{http.Header{"User-Agent": {"kubectl"}, "Impersonate": {"x"}, "Impersonated-User": {"x"}}, 0, ""},
		{http.Header{"Impersonate-User": {""}}, 0, ""},
		{http.Header{"Impersonate-User": {}, "Impersonate-Uid": {""}}, 0, ""},
		{http.Header{"Impersonate-User": {"nobody"}}, 403, forbidden},
		{http.Header{"Impersonate-User": {"", "nobody"}}, 403, forbidden},
		{http.Header{"Impersonate-User": {"nobody"}, "Impersonate-Group": {"g"}, "Impersonate-Extra-Scopes": {"s"}}, 403, forbidden},
		{http.Header{"Impersonate-Group": {"g"}}, 400, "requested Impersonate-Group without impersonating a user name"},
		{http.Header{"Impersonate-Group": {""}}, 400, "requested Impersonate-Group without impersonating a user name"},
		{http.Header{"Impersonate-Uid": {"u"}}, 400, "requested Impersonate-Uid without impersonating a user name"},
		{http.Header{"Impersonate-Extra-Scopes": {"s"}}, 400, "requested Impersonate-Extra-Scopes without impersonating a user name"},
		{http.Header{"Impersonate-Uid": {"u"}, "Impersonate-Group": {"g"}, "Impersonate-User": {""}}, 400,
			"requested Impersonate-Group, Impersonate-Uid without impersonating a user name"},
	} {
		err := RefuseImpersonation(&request.User{Name: "bob", Groups: []string{request.Masters}}, tt.headers)
		if tt.code == 0 {
			if err != nil {
				t.Errorf("%v: %v", tt.headers, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%v: allowed", tt.headers)
			continue
		}
		if s := status.Of(err); s.Code != tt.code || s.Message != tt.message {
			t.Errorf("%v:\n got %d %s\nwant %d %s", tt.headers, s.Code, s.Message, tt.code, tt.message)
		}
	}
}
