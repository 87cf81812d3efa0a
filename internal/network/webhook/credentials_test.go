package webhook

import "testing"

// Credentials match a host and port, or all hosts with a suffix; without a port they match 443.
// The longest match wins.
func TestUsersFor(t *testing.T) {
	all := Users{}
	for _, name := range []string{"a.example.com:8443", "*.example.com:8443", "*.com:8443", "b.example.com", "*.default.svc", "*.svc", "127.0.0.1:9"} {
		all[name] = &Credentials{}
	}
	service := func(name, namespace string, port int32) Config {
		return Config{Service: Service{Name: name, Namespace: namespace, Port: port}}
	}
	for _, test := range []struct {
		of   Config
		want string
	}{
		{Config{URL: "https://a.example.com:8443/x"}, "a.example.com:8443"},
		{Config{URL: "https://c.example.com:8443"}, "*.example.com:8443"},
		{Config{URL: "https://c.example.com:8444"}, ""},
		{Config{URL: "https://example.com:8443"}, "*.com:8443"},
		{Config{URL: "https://b.example.com"}, "b.example.com"},
		{Config{URL: "https://b.example.com:443"}, "b.example.com"},
		{Config{URL: "https://b.example.com:444"}, ""},
		{Config{URL: "https://127.0.0.1:9"}, "127.0.0.1:9"},
		{service("a", "default", 0), "*.default.svc"},
		{service("a", "other", 443), "*.svc"},
		{service("a", "other", 8080), ""},
	} {
		if got := all.For(test.of); got != all[test.want] {
			t.Errorf("%+v gets other credentials than %q", test.of, test.want)
		}
	}
}
