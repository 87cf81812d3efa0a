// Package apiclient sends the requests of commands to an API server, and finds the kind that a command
// line names.
//
// It knows paths, discovery and the errors of a server. It does not know the meaning of the objects.
package apiclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// A Server is an API server with a client for it.
type Server struct {
	Client *http.Client
	URL    string
	// Name names the server in messages; the default is "the server".
	Name string
}

// A Request is a request for JSON.
type Request struct {
	Method, Path string
	Accept       string // application/json by default
	Type         string // of the body; application/json by default
	Body         []byte
}

// Do sends a request and decodes the answer into out, unless out is nil. Integers stay exact. An answer
// with an error is a *Refusal.
func (s Server) Do(ctx context.Context, request Request, out any) (code int, err error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, s.URL+request.Path, bytes.NewReader(request.Body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept", cmp.Or(request.Accept, "application/json"))
	if request.Body != nil {
		r.Header.Set("Content-Type", cmp.Or(request.Type, "application/json"))
	}
	answer, err := s.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return answer.StatusCode, Refused(answer)
	}
	data, err := io.ReadAll(answer.Body)
	if err == nil && out != nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, out)
	}
	return answer.StatusCode, err
}

// Get reads a document.
func (s Server) Get(ctx context.Context, path string, out any) error {
	_, err := s.Do(ctx, Request{Method: http.MethodGet, Path: path}, out)
	return err
}

// Objects reads an object, or all objects of a list. They have their type.
func (s Server) Objects(ctx context.Context, path string) ([]object.Tree, error) {
	var answer object.Tree
	if err := s.Get(ctx, path, &answer); err != nil {
		return nil, err
	}
	items, ok := answer["items"].([]any)
	if _, list := object.Metadata(answer)["name"]; list || !ok {
		return []object.Tree{answer}, nil
	}
	var all []object.Tree
	kind := object.Kind(answer)
	for _, item := range items {
		o, ok := item.(object.Tree)
		if !ok {
			continue
		}
		if o["kind"] == nil { // items of lists of built-in kinds have no type
			o["kind"], o["apiVersion"] = kind[:max(0, len(kind)-len("List"))], answer["apiVersion"]
		}
		all = append(all, o)
	}
	return all, nil
}

// A Refusal is an answer with an error.
type Refusal struct {
	Code   int
	Status metav1.Status // without a message if the answer is no Status
	answer string
}

func (r *Refusal) Error() string {
	if r.Status.Message != "" {
		return "the server says: " + r.Status.Message
	}
	return "the server answers " + r.answer
}

// Refused returns the error of an answer: a *Refusal, unless reading fails.
func Refused(answer *http.Response) error {
	const enough = 1 << 20 // of an error response
	body, err := io.ReadAll(io.LimitReader(answer.Body, enough))
	if err != nil {
		return err
	}
	r := &Refusal{Code: answer.StatusCode, answer: answer.Status}
	if json.Unmarshal(body, &r.Status) != nil {
		r.Status = metav1.Status{}
	}
	return r
}

// Code returns the HTTP code of a Refusal, or 0.
func Code(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return 0
}

// Missing reports whether an object, or a path, does not exist.
func Missing(err error) bool { return Code(err) == http.StatusNotFound }
