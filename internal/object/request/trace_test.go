package request

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// The valid trace headers of a client continue, and no others.
func TestCopyTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, test := range map[string]struct{ sent, want http.Header }{
		"nothing":           {http.Header{"Authorization": {"Bearer secret"}}, http.Header{}},
		"trace":             {http.Header{traceParent: {parent}, traceState: {"a=b", "c=d"}}, http.Header{traceParent: {parent}, traceState: {"a=b", "c=d"}}},
		"baggage":           {http.Header{baggage: {"user=ann"}}, http.Header{baggage: {"user=ann"}}},
		"large baggage":     {http.Header{baggage: {strings.Repeat("x", maxBaggage+1)}}, http.Header{}},
		"two parents":       {http.Header{traceParent: {parent, parent}}, http.Header{}},
		"state alone":       {http.Header{traceState: {"a=b"}}, http.Header{}},
		"state of no trace": {http.Header{traceParent: {"00-x"}, traceState: {"a=b"}}, http.Header{}},
	} {
		got := http.Header{}
		(&Request{Sent: test.sent}).copyTrace(got)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	(*Request)(nil).copyTrace(http.Header{}) // a call that no request causes
}

// The rules for version 00 of https://www.w3.org/TR/trace-context, section 3.2.
func TestValidParent(t *testing.T) {
	for parent, want := range map[string]bool{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   true,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00":   true,
		"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-04":   false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1":    false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x": false,
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   false,
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333--01":   false,
		"": false,
	} {
		if got := validParent(parent); got != want {
			t.Errorf("%q: %t", parent, got)
		}
	}
}
