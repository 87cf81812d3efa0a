package request_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// The answer depends on the context: none to a client that disconnected, and after a timeout that
// of kube-apiserver, whatever the error.
func TestFail(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		code int
		kind string // Content-Type
		want string
	}{
		{"an error", t.Context(), status.Timeout("wait", 0), 504, "application/json",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: wait","reason":"Timeout","details":{},"code":504}` + "\n"},
		{"no time left", late, status.Internal(context.DeadlineExceeded), 504, "text/plain; charset=utf-8",
			`{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}` + "\n"},
		{"gone", gone, context.Canceled, 200, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			request.Fail(w, httptest.NewRequest("GET", "/", nil).WithContext(test.ctx), test.err)
			if got := w.Body.String(); w.Code != test.code || w.Header().Get("Content-Type") != test.kind || got != test.want {
				t.Errorf("%d %s %s, want %d %s %s", w.Code, w.Header().Get("Content-Type"), got, test.code, test.kind, test.want)
			}
		})
	}
}
