package cluster

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Collection is the collection to follow.
type Collection struct {
	Path          string // of the list
	FieldSelector string
	// MetadataOnly requests only the metadata: objects are PartialObjectMetadata.
	MetadataOnly bool
}

// An Observer gets objects in the order of their changes. An error of any of its methods starts a
// new list.
type Observer[T any] interface {
	// Replace gets all existing objects.
	Replace(ctx context.Context, all []*T) error
	// Set gets an object that was created or changed.
	Set(ctx context.Context, one *T) error
	// Delete gets the last state of a deleted object.
	Delete(ctx context.Context, one *T) error
}

// Follow sends the objects of a collection to an Observer until ctx ends.
func Follow[T any](ctx context.Context, c *Client, of Collection, o Observer[T], log *slog.Logger) {
	Reflect(ctx, &follower[T]{c, of, o}, log.With("path", of.Path))
}

// A follower is the Collector of an Observer.
type follower[T any] struct {
	client   *Client
	of       Collection
	observer Observer[T]
}

// List implements Collector.
func (f *follower[T]) List(ctx context.Context) (string, error) {
	var list struct {
		metav1.ListMeta `json:"metadata"`
		Items           []*T `json:"items"`
	}
	if err := f.readList(ctx, &list); err != nil {
		return "", err
	}
	return list.ResourceVersion, f.observer.Replace(ctx, list.Items)
}

// readList reads the collection. The timeout covers the request only, not the observer.
func (f *follower[T]) readList(ctx context.Context, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := f.get(ctx, "List", url.Values{})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return read(response, into)
}

// get requests the collection.
func (f *follower[T]) get(ctx context.Context, suffix string, query url.Values) (*http.Response, error) {
	accept := "application/json"
	if f.of.MetadataOnly {
		accept += ";as=PartialObjectMetadata" + suffix + ";g=meta.k8s.io;v=v1"
	}
	if f.of.FieldSelector != "" {
		query.Set("fieldSelector", f.of.FieldSelector)
	}
	return f.client.do(ctx, http.MethodGet, f.of.Path+"?"+query.Encode(), "", accept, nil)
}

// Watch implements Collector.
func (f *follower[T]) Watch(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	response, err := f.get(ctx, "", query)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Change implements Collector.
func (f *follower[T]) Change(ctx context.Context, deleted bool, data []byte) error {
	one := new(T)
	if err := json.Unmarshal(data, one); err != nil {
		return err
	}
	if deleted {
		return f.observer.Delete(ctx, one)
	}
	return f.observer.Set(ctx, one)
}
