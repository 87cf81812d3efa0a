// Package lsp is a language server for manifests: errors as a server would report them, completion, and
// documentation, for objects of all kinds and for CustomResourceDefinitions.
//
// It speaks the Language Server Protocol over a stream, and knows the text of open files. A Workspace, which
// it is given, decides about manifests and has the served kinds. A text that is being edited is rarely
// valid YAML, so the place of the cursor comes from the indentation of lines and from brackets.
package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Problem is an error or a warning at a place of a text. Lines and columns begin at 1.
type Problem struct {
	Line, Column int
	Warning      bool
	Message      string
}

// A Workspace knows the kinds of the folder that an editor has open. It is safe for concurrent use.
type Workspace interface {
	// Open reads the definitions below a folder, and reads them again when they change.
	Open(ctx context.Context, folder string) error
	// Check returns the problems of a manifest.
	Check(ctx context.Context, text string) ([]Problem, error)
	// Kinds returns the served kinds.
	Kinds() *resource.Set
}

// A Server is the language server of one editor.
type Server struct {
	Workspace Workspace
	Version   string
	// Delay is the time without a change after which a text is checked.
	Delay time.Duration

	out   stream
	mu    sync.Mutex
	texts map[string]*opened // by URI
	ended bool               // after the request shutdown
	work  sync.WaitGroup
}

// opened is an open text.
type opened struct {
	text    string
	version int
	cancel  context.CancelFunc // of the check under way
}

// errExit ends a session.
var errExit = errors.New("exit")

// Run serves an editor until it says exit or closes the stream. The error is nil after an orderly end.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.work.Wait()
	defer cancel()
	s.out.w, s.texts = out, map[string]*opened{}
	reader := newReader(in)
	for {
		m, err := reader.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.handle(ctx, m); err != nil {
			if errors.Is(err, errExit) && s.ended {
				return nil
			}
			return err
		}
	}
}

// handle answers a message. Errors end the session.
func (s *Server) handle(ctx context.Context, m *message) error {
	switch m.Method {
	case "initialize":
		return s.out.answer(m, s.initialize(ctx, m.Params))
	case "shutdown":
		s.ended = true
		return s.out.answer(m, nil)
	case "exit":
		return errExit
	case "textDocument/didOpen":
		var p struct{ TextDocument textDocument }
		_ = json.Unmarshal(m.Params, &p)
		s.change(ctx, p.TextDocument.URI, p.TextDocument.Text, p.TextDocument.Version)
	case "textDocument/didChange":
		var p struct {
			TextDocument   textDocument
			ContentChanges []struct{ Text string }
		}
		_ = json.Unmarshal(m.Params, &p)
		if n := len(p.ContentChanges); n > 0 {
			s.change(ctx, p.TextDocument.URI, p.ContentChanges[n-1].Text, p.TextDocument.Version)
		}
	case "textDocument/didSave":
		s.again(ctx)
	case "textDocument/didClose":
		var p struct{ TextDocument textDocument }
		_ = json.Unmarshal(m.Params, &p)
		s.close(p.TextDocument.URI)
	case "textDocument/completion":
		return s.out.answer(m, s.completion(m.Params))
	case "textDocument/hover":
		return s.out.answer(m, s.hover(m.Params))
	default:
		if len(m.ID) > 0 {
			return s.out.fail(m, methodNotFound, "the method "+m.Method+" is not supported")
		}
	}
	return nil
}

type textDocument struct {
	URI     string
	Text    string
	Version int
}

// A position is a place in a text. Both numbers begin at 0; Character counts UTF-16 code units.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type textRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type textEdit struct {
	Range   textRange `json:"range"`
	NewText string    `json:"newText"`
}

type jsonObject = map[string]any

func (s *Server) initialize(ctx context.Context, params json.RawMessage) jsonObject {
	var p struct {
		RootURI          string
		RootPath         string
		WorkspaceFolders []struct{ URI string }
	}
	_ = json.Unmarshal(params, &p)
	folder := pathOf(p.RootURI)
	if len(p.WorkspaceFolders) > 0 {
		folder = pathOf(p.WorkspaceFolders[0].URI)
	}
	if folder == "" {
		folder = p.RootPath
	}
	if err := s.Workspace.Open(ctx, folder); err != nil {
		s.show(err.Error())
	}
	return jsonObject{
		"serverInfo": jsonObject{"name": "anykind", "version": s.Version},
		"capabilities": jsonObject{
			"textDocumentSync":   jsonObject{"openClose": true, "change": 1, "save": true}, // whole texts
			"completionProvider": jsonObject{"triggerCharacters": []string{" ", ":", "-", "{", "[", ",", `"`}},
			"hoverProvider":      true,
		},
	}
}

// pathOf returns the path of a file URI, or "".
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	path := u.Path
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // of Windows
		path = path[1:]
	}
	return filepath.FromSlash(path)
}

// show shows a message to the user.
func (s *Server) show(text string) {
	_ = s.out.notify("window/showMessage", jsonObject{"type": 2, "message": text})
}

// change records a text and checks it after a while.
func (s *Server) change(ctx context.Context, uri, text string, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.texts[uri]; was != nil && was.cancel != nil {
		was.cancel()
	}
	o := &opened{text: text, version: version}
	s.texts[uri] = o
	s.check(ctx, uri, o)
}

// check starts a check. The caller holds mu.
func (s *Server) check(ctx context.Context, uri string, o *opened) {
	ctx, o.cancel = context.WithCancel(ctx)
	text, version := o.text, o.version
	s.work.Go(func() {
		select {
		case <-time.After(s.Delay):
		case <-ctx.Done():
			return
		}
		problems, err := s.Workspace.Check(ctx, text)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			problems = []Problem{{Line: 1, Column: 1, Message: err.Error()}}
		}
		_ = s.out.notify("textDocument/publishDiagnostics", jsonObject{"uri": uri, "version": version, "diagnostics": diagnostics(text, problems)})
	})
}

// again checks all texts, because a definition may have changed.
func (s *Server) again(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uri, o := range s.texts {
		if o.cancel != nil {
			o.cancel()
		}
		s.check(ctx, uri, o)
	}
}

func (s *Server) close(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.texts[uri]; o != nil {
		if o.cancel != nil {
			o.cancel()
		}
		delete(s.texts, uri)
		_ = s.out.notify("textDocument/publishDiagnostics", jsonObject{"uri": uri, "diagnostics": []any{}})
	}
}

// text returns an open text.
func (s *Server) text(uri string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.texts[uri]; o != nil {
		return o.text
	}
	return ""
}

// diagnostics returns problems in the form of the protocol: each from its place to the end of its line.
func diagnostics(text string, problems []Problem) []any {
	lines := strings.Split(text, "\n")
	out := []any{}
	for _, p := range problems {
		if !manifest(text, p.Line-1) {
			continue
		}
		at := max(0, min(p.Line-1, len(lines)-1))
		line := strings.TrimRight(lines[at], "\r")
		start := max(0, min(p.Column-1, len(line)))
		severity := 1
		if p.Warning {
			severity = 2
		}
		out = append(out, jsonObject{
			"range":    textRange{position{at, object.UTF16Len(line[:start])}, position{at, max(object.UTF16Len(line[:start])+1, object.UTF16Len(strings.TrimRight(line, " ")))}},
			"severity": severity, "source": "anykind", "message": p.Message,
		})
	}
	return out
}

// manifest reports whether a line is in a document of a kind. Other YAML has no errors here.
func manifest(text string, at int) bool {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return true
	}
	p := find(text, at, 0)
	return p.apiVersion != "" || p.kind != ""
}

// offset returns the number of bytes of the first units of a line.
func offset(line string, of int) int {
	n := 0
	for i, r := range line {
		if n >= of {
			return i
		}
		n++
		if r > 0xffff {
			n++
		}
	}
	return len(line)
}
