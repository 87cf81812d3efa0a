package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/store/kv"
)

const (
	longest   = 30 * time.Second // limit for a request
	mostBytes = 64 << 20         // limit for an answer
	pageSize  = "500"
)

// Lists and watches request only the metadata of objects, if the server supports it.
const (
	anyJSON      = "application/json"
	metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	metadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// A demand is one request.
type demand struct {
	place  place
	method string
	path   string
	query  url.Values
	accept string
	body   []byte
}

var verbs = map[string]string{http.MethodGet: "get", http.MethodPut: "put", http.MethodDelete: "delete"}

// send sends a request. An answer other than success is an error in the words of client-go.
func (o *Servers) send(ctx context.Context, d demand) (io.ReadCloser, error) {
	_, name := d.place.object()
	unable := func(code int, message string) error {
		return apierrors.NewGenericServerResponse(code, verbs[d.method], d.place.GroupResource(), name, message, 0, true)
	}
	to, as, known := o.peers.To(ctx, d.place.GroupVersionResource, o.user)
	if s := o.aggregator.Services(ctx).Lookup(d.place.Group, d.place.Version); s != nil {
		if !s.Available {
			return nil, unable(http.StatusServiceUnavailable, "")
		}
		var err error
		if to, err = s.Backend.Resolve(ctx); err != nil {
			return nil, unable(http.StatusServiceUnavailable, "")
		}
		as = s.Backend.As(o.user)
	}
	switch {
	case to == nil && known: // its peer restarts, or has lost its address
		return nil, unable(http.StatusServiceUnavailable, "")
	case to == nil:
		return nil, &controller.UnknownError{What: d.path}
	}
	to.Path, to.RawQuery = d.path, d.query.Encode()
	r, err := http.NewRequestWithContext(ctx, d.method, to.String(), bytes.NewReader(d.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", d.accept)
	if d.body != nil {
		r.Header.Set("Content-Type", anyJSON)
	}
	answer, err := as.RoundTrip(r)
	if err != nil {
		return nil, unable(http.StatusServiceUnavailable, "")
	}
	if answer.StatusCode < 300 {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // The error has what arrived.
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure {
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return nil, unable(answer.StatusCode, strings.TrimSpace(string(body)))
}

// ask sends a request and reads the answer.
func (o *Servers) ask(ctx context.Context, d demand) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	body, err := o.send(ctx, d)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("%s says more than %d bytes", d.path, mostBytes)
	}
	return data, err
}

// missing reports whether an answer says that the object does not exist. A 404 with another
// reason does not say that: a proxy may have sent it.
func missing(err error, name string) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name && status.Status().Reason == metav1.StatusReasonNotFound && !unexpected(details)
}

// unexpected reports whether the answer came from a server other than a Kubernetes API server.
func unexpected(d *metav1.StatusDetails) bool {
	for _, c := range d.Causes {
		if c.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// Get implements controller.Aggregated.
func (o *Servers) Get(ctx context.Context, key string) ([]byte, error) {
	p, err := parse(key)
	if err != nil {
		return nil, err
	}
	path, name := p.object()
	body, err := o.ask(ctx, demand{place: p, method: http.MethodGet, path: path, accept: anyJSON})
	if missing(err, name) {
		return nil, nil
	}
	return body, err
}

// Put implements controller.Aggregated.
func (o *Servers) Put(ctx context.Context, key string, body []byte) error {
	p, err := parse(key)
	if err != nil {
		return err
	}
	path, _ := p.object()
	_, err = o.ask(ctx, demand{place: p, method: http.MethodPut, path: path, accept: anyJSON, body: body})
	return err
}

// Delete implements controller.Aggregated.
func (o *Servers) Delete(ctx context.Context, key string, options *metav1.DeleteOptions) error {
	p, err := parse(key)
	if err != nil {
		return err
	}
	full := *options
	full.Kind, full.APIVersion = "DeleteOptions", "v1"
	body, err := json.Marshal(&full)
	if err != nil {
		return err
	}
	path, name := p.object()
	_, err = o.ask(ctx, demand{place: p, method: http.MethodDelete, path: path, accept: anyJSON, body: body})
	if missing(err, name) {
		return nil
	}
	return err
}

// A list is a page of objects. A server without paging sends all objects at once.
type list struct {
	Metadata metav1.ListMeta
	Items    []json.RawMessage
}

// Pages implements controller.Aggregated.
func (o *Servers) Pages(ctx context.Context, prefix string, do func(kv.Page)) error {
	_, err := o.pages(ctx, prefix, do)
	return err
}

// pages is Pages, and returns the resource version at which a watch starts.
func (o *Servers) pages(ctx context.Context, prefix string, do func(kv.Page)) (revision string, err error) {
	p, err := parse(prefix)
	if err != nil {
		return "", err
	}
	// The place has no name: errors are about the collection.
	d := demand{place: place{GroupVersionResource: p.GroupVersionResource}, method: http.MethodGet, path: p.objects(), query: url.Values{"limit": {pageSize}}, accept: metadataList}
	for {
		body, err := o.ask(ctx, d)
		if err != nil {
			return "", err
		}
		var l list
		if err := json.Unmarshal(body, &l); err != nil {
			return "", err
		}
		page := kv.Page{More: l.Metadata.Continue != ""}
		for _, item := range l.Items {
			r, err := recordOf(p, item)
			if err != nil {
				return "", err
			}
			page.Revision = max(page.Revision, r.Revision)
			page.Records = append(page.Records, r)
		}
		do(page)
		if !page.More {
			return l.Metadata.ResourceVersion, nil
		}
		d.query.Set("continue", l.Metadata.Continue)
	}
}

// recordOf returns an object as a record of the store.
func recordOf(p place, body []byte) (kv.Record, error) {
	var t struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(body, &t); err != nil {
		return kv.Record{}, err
	}
	key := controller.OthersRoot + p.Group + "/" + p.Version + "/" + p.Resource + "/"
	if t.Metadata.Namespace != "" {
		key += t.Metadata.Namespace + "/"
	}
	return kv.Record{Key: key + t.Metadata.Name, Value: body, Revision: controller.RevisionOf(body)}, nil
}
