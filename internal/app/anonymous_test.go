package app

import "testing"

// Without credentials one sees whether the server is well and which version it is; more, or
// less, takes a flag.
func TestAnonymous(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		name             string
		allowed          *bool
		version, objects int
	}{
		{"not said", nil, 200, 401},
		{"allowed", &yes, 200, 403},
		{"not allowed", &no, 401, 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := start(t, Options{Authentication: Authentication{Anonymous: test.allowed}})
			defer stop(t, a)
			anybody := client(t, a, nil)
			for path, want := range map[string]int{"/version": test.version, "/readyz": test.version, "/api/v1/namespaces": test.objects, "/apis": test.objects} {
				code, body := ask(t, anybody, "GET", a.URL()+path, "", "")
				if code != want {
					t.Errorf("%s: answered %d %s, want %d", path, code, body, want)
				}
			}
		})
	}
}
