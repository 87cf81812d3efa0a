package app

import (
	"fmt"
	"strings"
	"testing"
)

// A bootstrap token is valid from the write of its Secret to its deletion, and only if bootstrap
// tokens are enabled.
func TestBootstrapTokens(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	for _, enabled := range []bool{false, true} {
		t.Run(fmt.Sprint(enabled), func(t *testing.T) {
			a := start(t, Options{Authentication: Authentication{BootstrapTokens: enabled}})
			defer stop(t, a)
			admin, anonymous := client(t, a, admin(t, a)), client(t, a, nil)
			check := func(want int) {
				t.Helper()
				code, body := ask(t, anonymous, "GET", a.URL()+"/api/v1/nodes", token, "")
				if code != want || code == 403 && !strings.Contains(body, `User \"system:bootstrap:abcdef\" cannot list`) {
					t.Errorf("answered %d %s, want %d", code, body, want)
				}
			}
			secrets := a.URL() + "/api/v1/namespaces/kube-system/secrets"
			check(401)
			code, body := ask(t, admin, "POST", secrets, "", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",
				"stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true"}}`)
			if code != 201 {
				t.Fatal(code, body)
			}
			if enabled {
				check(403)
			} else {
				check(401)
			}
			if code, body := ask(t, admin, "DELETE", secrets+"/bootstrap-token-abcdef", "", ""); code != 200 {
				t.Fatal(code, body)
			}
			check(401)
		})
	}
}
