// Package reviewtest has a review server for tests.
//
// It gives the same answer to all reviews, and records them. It knows no kind of review.
package reviewtest

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/review"
)

// A Server answers every review with a status or an error.
type Server struct {
	Status string // as JSON; "" fails the review

	Kind  schema.GroupVersionKind // of the last review
	Asked string                  // its spec, as JSON
	Times int                     // number of reviews
}

// Post answers a review.
func (s *Server) Post(_ context.Context, kind schema.GroupVersionKind, in, out review.Object) error {
	s.Kind = kind
	s.Times++
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var sent struct{ Spec json.RawMessage }
	if err := json.Unmarshal(data, &sent); err != nil {
		return err
	}
	s.Asked = string(sent.Spec)
	if s.Status == "" {
		return errors.New("not reached")
	}
	return json.Unmarshal([]byte(`{"status":`+s.Status+`}`), out)
}
