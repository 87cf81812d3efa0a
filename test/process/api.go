package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// An API makes requests of a server.
type API struct {
	Client *http.Client
	URL    string
}

// A Refused is an answer that is not a success.
type Refused struct {
	Code    int
	Request string
	Body    string
}

func (r *Refused) Error() string { return fmt.Sprintf("%s: %d %s", r.Request, r.Code, r.Body) }

// Reason is that of the Status in the answer, "" if there is none.
func (r *Refused) Reason() string {
	var status struct{ Reason string }
	_ = json.Unmarshal([]byte(r.Body), &status) // what is no Status has no reason
	return status.Reason
}

// Unanswered reports whether nobody knows if a request had an effect.
func Unanswered(err error) bool {
	var refused *Refused
	return err != nil && (!errors.As(err, &refused) || refused.Code >= http.StatusInternalServerError)
}

// Do makes a request and decodes the answer into out, unless out is nil. An error
// that is not *Refused says that there is no whole answer, and then nobody knows
// whether the request had an effect.
func (a API) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.URL+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	response, err := a.Client.Do(r)
	if err != nil {
		return err
	}
	data, err := whole(response)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// Read returns what is at a path, as it is.
func (a API) Read(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := a.Client.Do(r)
	if err != nil {
		return nil, err
	}
	return whole(response)
}

// whole reads an answer to its end.
func whole(response *http.Response) ([]byte, error) {
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		r := response.Request
		return nil, &Refused{Code: response.StatusCode, Request: r.Method + " " + r.URL.Path, Body: string(data)}
	}
	return data, nil
}
