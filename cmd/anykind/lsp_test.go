package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/lsp"
)

// Sessions of Neovim, recorded. In the first one, an object with three errors is opened, two are corrected, fields
// and values are completed, and documentation is shown. The other one does so in braces and in JSON. The messages
// of the server are in testdata/lsp, too.
func TestLanguageServer(t *testing.T) {
	for _, name := range []string{"neovim", "braces"} {
		t.Run(name, func(t *testing.T) { testSession(t, "testdata/lsp/"+name+".jsonl", "testdata/lsp/"+name+".txt") })
	}
}

func testSession(t *testing.T, session, file string) {
	t.Helper()
	folder := t.TempDir()
	definition, err := os.ReadFile("testdata/lsp/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "crd.yaml"), definition, 0o600); err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(session)
	if err != nil {
		t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := lspCommand()
	c.SetArgs(nil)
	c.SetIn(in)
	c.SetOut(out)
	ended := make(chan error, 1)
	go func() {
		err := c.Execute()
		out.Close()
		ended <- err
	}()
	answers := bufio.NewReader(fromServer)
	var got strings.Builder
	slash := filepath.ToSlash(folder)
	for line := range strings.Lines(string(recorded)) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "${FOLDER}", slash)
		if _, err := fmt.Fprintf(toServer, "Content-Length: %d\r\n\r\n%s", len(line), line); err != nil {
			t.Fatal(err)
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if len(m.ID) > 0 || m.Method == "textDocument/didOpen" || m.Method == "textDocument/didChange" {
			fmt.Fprintf(&got, "== %s\n%s\n", m.Method, strings.ReplaceAll(answer(t, answers), slash, "${FOLDER}"))
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the session is another one (UPDATE=1 records it):\n%s", got.String())
	}
}

// The problems of the output of Helm and of a ResourceList are at their places in the text, and not in the files that
// the text names.
func TestLanguageServerOfRenderedText(t *testing.T) {
	t.Chdir(t.TempDir())
	w := workspace{Workspace: &check.Workspace{Options: check.Options{AllowPrivileged: true}}}
	defer func() { _ = w.Close(context.Background()) }()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  unknown: 1\n"
	const list = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, unknown: 1, annotations: {config.kubernetes.io/path: a.yaml}}}
`
	if err := os.WriteFile("a.yaml", []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := w.Check(t.Context(), "---\n# Source: a.yaml\n"+object+"---\n"+object+"---\n"+list)
	if err != nil {
		t.Fatal(err)
	}
	const message = `metadata.unknown: unknown field "metadata.unknown"`
	if want := []lsp.Problem{{Line: 7, Column: 3, Message: message}, {Line: 13, Column: 3, Message: message}, {Line: 18, Column: 57, Message: message}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// answer returns the next message of the server, without the version of the program.
func answer(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	header, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscanf(header, "Content-Length: %d", &n); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(in, body); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	if result, ok := m["result"].(map[string]any); ok {
		delete(result, "serverInfo")
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
