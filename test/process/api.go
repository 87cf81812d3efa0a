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

// An API sends requests to a server.
type API struct {
	Client *http.Client
	URL    string
}

// A Refused is the error of a response without success.
type Refused struct {
	Code    int
	Request string
	Body    string
}

func (r *Refused) Error() string { return fmt.Sprintf("%s: %d %s", r.Request, r.Code, r.Body) }

// Reason returns the reason of the Status in the response, "" if there is none.
func (r *Refused) Reason() string {
	var status struct{ Reason string }
	_ = json.Unmarshal([]byte(r.Body), &status) // other bodies have no reason
	return status.Reason
}

// Unanswered reports whether it is unknown if a request had an effect.
func Unanswered(err error) bool {
	var refused *Refused
	return err != nil && (!errors.As(err, &refused) || refused.Code >= http.StatusInternalServerError)
}

// Do sends a request and decodes the response into out, unless out is nil. An error that is not
// *Refused means that there is no whole response: the request may have had an effect or not.
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

// Read returns the body of a GET, undecoded.
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

// whole reads a response to its end.
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
