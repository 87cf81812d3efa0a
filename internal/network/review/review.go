// Package review sends reviews, such as a TokenReview or a SubjectAccessReview, to the server of
// a kubeconfig file.
//
// It knows the connection, the form of an answer, and when to retry. It does not know the content
// of a review. Errors quote an answer only if it is a Status.
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
	// Timeout limits a request with its answer.
	Timeout = 30 * time.Second
	// maxReply limits the size of an answer.
	maxReply = 3 << 20
)

// Retries returns the backoff of kube-apiserver: five attempts, with growing pauses from half a
// second.
func Retries() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

// A Client sends reviews to one server.
type Client struct {
	// Observe, if set, is called with the result of each attempt.
	Observe func(ctx context.Context, took time.Duration, err error)

	url     string
	http    *http.Client
	retries wait.Backoff
}

// Open returns a Client for the server of a kubeconfig file. Reviews are POSTed to path below the
// URL of the server: the path of their resource for a Kubernetes server, "" for a webhook. All
// connections are made by dial. timeout limits a request.
func Open(file, path string, dial func(ctx context.Context, network, address string) (net.Conn, error), timeout time.Duration) (*Client, error) {
	config, err := kubeconfig.Open(file)
	if err != nil {
		return nil, err
	}
	c := &Client{url: config.Post(path, timeout), http: config.ClientBy(dial), retries: Retries()}
	c.http.Timeout = timeout
	return c, nil
}

// RetryAfter sets the first pause before a retry.
func (c *Client) RetryAfter(pause time.Duration) { c.retries.Duration = pause }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// An Object is a review in one version.
type Object interface {
	runtime.Object
	metav1.Object
}

// Post sends a review, and decodes the answer, of the same kind, into out. It retries after
// transient errors.
func (c *Client) Post(ctx context.Context, kind schema.GroupVersionKind, in, out Object) error {
	in.GetObjectKind().SetGroupVersionKind(kind)
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var last error // better than an error about a number of attempts
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

// passes reports whether an error is transient.
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
