// Package cluster reads, watches and writes objects of another API server: that of the cluster
// which this server extends.
//
// It knows paths, lists and watches, and when to list again. It does not know the meaning of the
// objects.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

const (
	// timeout limits a request other than a watch.
	timeout = 10 * time.Second
	// maxAnswer limits an answer that is read as a whole.
	maxAnswer = 256 << 20
)

// A Client sends requests to one API server.
type Client struct {
	url  string
	http *http.Client
}

// Open returns a Client for the server in a kubeconfig file, or for the one that
// kubeconfig.InCluster stands for. All connections are made by dial.
func Open(file string, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Client, error) {
	config, err := kubeconfig.Open(file)
	if err != nil {
		return nil, err
	}
	return &Client{config.URL, config.ClientBy(dial)}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get reads the object at a path. An error of the server is an apierrors.APIStatus.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.exchange(ctx, http.MethodGet, path, "", nil, into)
}

// Apply applies fields of the object at a path as a manager, with force.
func (c *Client) Apply(ctx context.Context, path, manager string, fields any) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return c.exchange(ctx, http.MethodPatch, path+"?force=true&fieldManager="+manager, "application/apply-patch+yaml", body, nil)
}

// Delete deletes the object at a path under preconditions on its uid and resourceVersion.
func (c *Client) Delete(ctx context.Context, path string, only metav1.Preconditions) error {
	body, err := json.Marshal(&metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &only,
	})
	if err != nil {
		return err
	}
	return c.exchange(ctx, http.MethodDelete, path, "application/json", body, nil)
}

// exchange sends a request and reads the answer.
func (c *Client) exchange(ctx context.Context, method, path, mediaType string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := c.do(ctx, method, path, mediaType, "application/json", body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return read(response, into)
}

// do sends a request. An answer other than success is an error.
func (c *Client) do(ctx context.Context, method, path, mediaType, accept string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if mediaType != "" {
		r.Header.Set("Content-Type", mediaType)
	}
	r.Header.Set("Accept", accept)
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	var s metav1.Status
	if read(response, &s) == nil && s.Kind == "Status" && s.Status == metav1.StatusFailure {
		return nil, &apierrors.StatusError{ErrStatus: s}
	}
	return nil, apierrors.NewGenericServerResponse(response.StatusCode, method, schema.GroupResource{}, "", "", 0, true)
}

func read(response *http.Response, into any) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxAnswer:
		return fmt.Errorf("the response is larger than %d bytes", maxAnswer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(data, into)
}
