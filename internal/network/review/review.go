// Package review asks a server that a kubeconfig file names what it thinks of something: whose
// a token is, or who may do what.
//
// It knows how such a server is reached, what its answer has to be, and when to ask again. It
// does not know what is asked. No error has anything of an answer in it that is not a Status.
package review

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

const (
	// Timeout bounds a request, its answer included.
	Timeout = 30 * time.Second
	// maxReply bounds an answer.
	maxReply = 3 << 20
)

// Retries are those of kube-apiserver: five attempts, with longer pauses from half a second on.
func Retries() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

// A Client asks one server.
type Client struct {
	// Observe, if it is set, is told what came of each attempt.
	Observe func(ctx context.Context, took time.Duration, err error)

	url     string
	http    *http.Client
	retries wait.Backoff
}

// Open returns a Client for the server that a kubeconfig file names. Reviews are sent to a path
// below the URL of the server: that of their resource if the server is one of Kubernetes, and none
// if it is there for reviews only. All connections are made by dial. timeout bounds a request.
func Open(file, path string, dial func(ctx context.Context, network, address string) (net.Conn, error), timeout time.Duration) (*Client, error) {
	config, err := kubeconfig.Open(file)
	if err != nil {
		return nil, err
	}
	c := &Client{url: config.URL + path + "?timeout=" + timeout.String(), http: config.ClientBy(dial), retries: Retries()}
	c.http.Timeout = timeout
	return c, nil
}

// RetryAfter sets the first pause before the server is asked again.
func (c *Client) RetryAfter(pause time.Duration) { c.retries.Duration = pause }

// Close closes connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// An Object is a review in one version.
type Object interface {
	runtime.Object
	metav1.Object
}

// Post sends a review of a kind, and reads the answer, which is of the same kind, into out. It asks
// again after errors that may pass.
func (c *Client) Post(ctx context.Context, kind schema.GroupVersionKind, in, out Object) error {
	in.GetObjectKind().SetGroupVersionKind(kind)
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var last error // says more than that there were several
	err = wait.ExponentialBackoffWithContext(ctx, c.retries, func(context.Context) (bool, error) {
		begun := time.Now()
		last = c.post(ctx, kind, body, out)
		if c.Observe != nil {
			c.Observe(ctx, time.Since(begun), last)
		}
		if passes(last) {
			return false, nil
		}
		return last == nil, last
	})
	switch {
	case last != nil:
		return last
	case err != nil:
		return fmt.Errorf("webhook call failed: %s", err)
	}
	return nil
}

// passes reports whether an error may be gone another time.
func passes(err error) bool {
	if err == nil {
		return false
	}
	if utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) {
		return true
	}
	_, soon := apierrors.SuggestsClientDelay(err)
	return soon
}

func (c *Client) post(ctx context.Context, kind schema.GroupVersionKind, body []byte, out Object) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err != nil {
		return fmt.Errorf("unexpected error when reading response body: %w", err)
	}
	if len(data) > maxReply {
		return fmt.Errorf("the response is larger than %d bytes", maxReply)
	}
	var is metav1.TypeMeta
	known := json.Unmarshal(data, &is) == nil
	if known && is.Kind == "Status" {
		var s metav1.Status
		if json.Unmarshal(data, &s) == nil && s.Status != metav1.StatusSuccess {
			return &apierrors.StatusError{ErrStatus: s}
		}
	}
	if response.StatusCode < http.StatusOK || response.StatusCode > http.StatusPartialContent {
		after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return apierrors.NewGenericServerResponse(response.StatusCode, http.MethodPost, schema.GroupResource{}, "", "", after, true)
	}
	switch {
	case !known:
		return fmt.Errorf("the response is not a JSON object")
	case is.Kind != "" && is.Kind != kind.Kind || is.APIVersion != "" && is.APIVersion != kind.GroupVersion().String():
		return fmt.Errorf("the response is a %.64q of %.64q, not a %s of %s", is.Kind, is.APIVersion, kind.Kind, kind.GroupVersion())
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the response is not a %s", kind.Kind)
	}
	return nil
}
