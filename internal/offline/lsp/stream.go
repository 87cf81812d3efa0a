package lsp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// A message is a request, a notification or a response of JSON-RPC.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// maxMessage limits a message: it has the whole text of a file.
const maxMessage = 64 << 20

// methodNotFound is the code of JSON-RPC for an unknown method.
const methodNotFound = -32601

// A reader reads messages, each with a header that has its length.
type reader struct{ in *bufio.Reader }

func newReader(in io.Reader) *reader { return &reader{bufio.NewReader(in)} }

func (r *reader) next() (*message, error) {
	length := -1
	for first := true; ; first = false {
		line, err := r.in.ReadString('\n')
		if err != nil {
			if first && line == "" {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("a header of a message ends early: %w", err)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || length < 0 || length > maxMessage {
				return nil, fmt.Errorf("a message has the Content-Length %q: want a number up to %d", value, maxMessage)
			}
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("a message has no Content-Length")
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r.in, body); err != nil {
		return nil, fmt.Errorf("a message ends early: %w", err)
	}
	m := &message{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("a message is no JSON: %w", err)
	}
	return m, nil
}

// A stream writes messages of several goroutines.
type stream struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *stream) send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = fmt.Fprintf(s.w, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// answer responds to a request.
func (s *stream) answer(m *message, result any) error {
	return s.send(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", m.ID, result})
}

// fail responds to a request with an error.
func (s *stream) fail(m *message, code int, text string) error {
	return s.send(jsonObject{"jsonrpc": "2.0", "id": m.ID, "error": jsonObject{"code": code, "message": text}})
}

// notify sends a notification.
func (s *stream) notify(method string, params any) error {
	return s.send(jsonObject{"jsonrpc": "2.0", "method": method, "params": params})
}
