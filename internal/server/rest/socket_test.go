package rest_test

import (
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dial watches over a WebSocket.
func (s *server) dial(path, accept string) *websocket.Conn {
	s.t.Helper()
	listener := httptest.NewServer(s.handler)
	s.t.Cleanup(listener.Close)
	config, err := websocket.NewConfig(strings.Replace(listener.URL, "http", "ws", 1)+path, "http://browser.example.com")
	if err != nil {
		s.t.Fatal(err)
	}
	config.Header.Set("Accept", accept)
	conn, err := config.DialContext(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// Each event is a text message.
func TestWatchBySocket(t *testing.T) {
	s := newServer(t)
	s.make("a", "b")
	conn := s.dial(leads+"?watch=1", "application/json")
	next := func() string {
		t.Helper()
		var text string
		if err := websocket.Message.Receive(conn, &text); err != nil {
			t.Fatal(err)
		}
		var e struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || !strings.HasSuffix(text, "}\n") {
			t.Fatalf("%q: %v", text, err)
		}
		return e.Type + " " + e.Object.Metadata.Name
	}
	expect(t, next, "ADDED a", "ADDED b")
	s.make("c")
	s.delete(leads+"/c", "").is(200)
	expect(t, next, "ADDED c", "DELETED c")
}

// A protobuf message has the event without a length prefix.
func TestSocketOfProtobuf(t *testing.T) {
	s := newServer(t)
	s.make("a")
	conn := s.dial(leads+"?watch=1", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	var message []byte
	if err := websocket.Message.Receive(conn, &message); err != nil {
		t.Fatal(err)
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(message); err != nil || e.Type != "ADDED" {
		t.Errorf("%q: %v", message, err)
	}
}

// The error of a watch that cannot start is an event too; then the connection ends.
func TestSocketTooOld(t *testing.T) {
	s := newServer(t)
	revision, _ := strconv.ParseInt(s.make("a", "b"), 10, 64)
	if err := s.backend.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	conn := s.dial(leads+"?watch=1&resourceVersion=1", "application/json")
	var text string
	if err := websocket.Message.Receive(conn, &text); err != nil || !strings.Contains(text, `"type":"ERROR"`) {
		t.Fatalf("%q, %v", text, err)
	}
	if err := websocket.Message.Receive(conn, &text); err == nil {
		t.Errorf("after the error: %q", text)
	}
}

// A handshake without an Origin is rejected.
func TestSocketWithoutOrigin(t *testing.T) {
	s := newServer(t)
	listener := httptest.NewServer(s.handler)
	defer listener.Close()
	r := httptest.NewRequestWithContext(t.Context(), "GET", listener.URL+leads+"?watch=1", nil)
	r.RequestURI = ""
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	} {
		r.Header.Set(name, value)
	}
	answer, err := listener.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != 403 {
		t.Errorf("%d", answer.StatusCode)
	}
}
