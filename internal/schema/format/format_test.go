package format

import "testing"

// Every format is known with dashes and without, and any other is ignored.
func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		format, right, wrong string
	}{
		{"date-time", "2026-01-02T03:04:05Z", "2026-01-02"},
		{"datetime", "2026-01-02T03:04:05+01:00", "noon"},
		{"date", "2026-02-28", "2026-02-30"},
		{"hostname", "a.example.com", "a..b"},
		{"ipv4", "010.0.0.1", "::1"},
		{"ipv6", "::1", "10.0.0.1"},
		{"cidr", "10.0.0.0/8", "10.0.0.0"},
		{"mac", "00:00:5e:00:53:01", "00:00"},
		{"byte", "YQ==", "Y"},
		{"uri", "https://example.com", "x"},
		{"k8s-short-name", "a-b", "a.b"},
		{"isbn10", "0306406152", "0306406153"},
	} {
		if is := Of(tt.format); is == nil || !is(tt.right) || is(tt.wrong) {
			t.Errorf("%s: want %q and not %q", tt.format, tt.right, tt.wrong)
		}
		if !Enforced("string", tt.format) || !Enforced("", tt.format) || Enforced("integer", tt.format) {
			t.Errorf("%s is enforced for strings, and for nothing else", tt.format)
		}
	}
	if Of("my-own") != nil || Enforced("string", "my-own") || Enforced("string", "") {
		t.Error("an unknown format is enforced")
	}
	for _, f := range []struct{ typ, format string }{{"integer", "int32"}, {"integer", "int64"}, {"number", "float"}, {"number", "double"}} {
		if !Enforced(f.typ, f.format) || Enforced("string", f.format) {
			t.Errorf("%s is enforced for type %s, and for nothing else", f.format, f.typ)
		}
	}
}
