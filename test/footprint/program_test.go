package footprint

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// recorded returns a number of megabytes, in bytes, from the file of numbers that may only get better.
func recorded(t *testing.T, name string) int64 {
	t.Helper()
	data, err := os.ReadFile("../../internal/rules/numbers.txt")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^` + name + `\s+(\d+)\s`).FindSubmatch(data)
	if line == nil {
		t.Fatalf("numbers.txt has no line for %q", name)
	}
	n, err := strconv.ParseInt(string(line[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * 1e6
}

// The linker leaves out unused functions, unless something calls methods by names
// that are known only at run time. Then it keeps every exported method of every
// type: 8 MB of program, and 5 MB of memory that is touched at the start.
func TestProgramHasNoTemplates(t *testing.T) {
	path := build(t)
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size, most := int64(len(program)), recorded(t, "program MB")
	t.Logf("a program of %s", megabytes(size))
	if size > most {
		t.Errorf("the program has %s, and numbers.txt allows %s", megabytes(size), megabytes(most))
	}
	if !bytes.Contains(program, []byte("net/http.(*Server).Serve")) {
		t.Fatal("names of functions are not found in the program")
	}
	const found = "text/template.(*state).evalField"
	if bytes.Contains(program, []byte(found)) {
		t.Errorf("%s has %s: go list -deps -tags grpcnotrace ./cmd/anykind, and see who uses templates", path, found)
	}
}
