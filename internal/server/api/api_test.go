package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/server/api"
)

// The first area that has the path answers.
func TestTable(t *testing.T) {
	says := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	below := func(root string) func(string) bool {
		return func(path string) bool { return strings.HasPrefix(path, root) }
	}
	table := api.Table{api.At(below("/debug"), says("pages")), api.At(below("/api"), says("objects"))}
	whole := append(table, api.Everywhere(says("rest")), api.Everywhere(says("never")))
	for path, want := range map[string][2]string{
		"/debug/x": {"pages", "pages"},
		"/apis":    {"objects", "objects"},
		"/":        {"404 page not found\n", "rest"},
	} {
		for i, h := range []http.Handler{table, whole} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if got := w.Body.String(); got != want[i] {
				t.Errorf("%s: %q, want %q", path, got, want[i])
			}
		}
	}
}
