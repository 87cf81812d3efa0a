package process

import (
	"bytes"
	"context"
	"encoding/json"
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
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return &Refused{Code: response.StatusCode, Request: method + " " + path, Body: string(data)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}
