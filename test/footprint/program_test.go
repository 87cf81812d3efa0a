package footprint

import (
	"bytes"
	"os"
	"testing"
)

// The linker removes unused functions, unless the program looks up methods by names at run time. Then
// it keeps every exported method of every type: 8 MB of program, and 5 MB of memory touched at the
// start.
func TestProgramHasNoTemplates(t *testing.T) {
	path := build(t)
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a program of %s", megabytes(int64(len(program))))
	if !bytes.Contains(program, []byte("net/http.(*Server).Serve")) {
		t.Fatal("names of functions are not found in the program")
	}
	const found = "text/template.(*state).evalField"
	if bytes.Contains(program, []byte(found)) {
		t.Errorf("%s has %s: go list -deps -tags grpcnotrace ./cmd/anykind, and see who uses templates", path, found)
	}
}
