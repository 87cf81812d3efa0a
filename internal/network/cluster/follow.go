package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// minWatch is the minimal duration of a watch; the maximal one is twice that.
	minWatch = 5 * time.Minute
	// firstPause is the pause after the first failure. Further pauses are longer, up to
	// lastPause.
	firstPause = 800 * time.Millisecond
	lastPause  = 30 * time.Second
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
	f := follower[T]{c, of, o}
	pause := firstPause
	for ctx.Err() == nil {
		listed, err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if listed {
			pause = firstPause
		}
		if err != nil {
			log.Warn("objects of the cluster cannot be watched; retrying", "path", of.Path, "pause", pause, "error", err)
		}
		select {
		case <-time.After(time.Duration(float64(pause) * (1 + rand.Float64()))):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
}

type follower[T any] struct {
	client   *Client
	of       Collection
	observer Observer[T]
}

// follow lists, then watches until the watch cannot resume.
func (f *follower[T]) follow(ctx context.Context) (listed bool, err error) {
	at, err := f.list(ctx)
	if err != nil {
		return false, err
	}
	for ctx.Err() == nil {
		begun := time.Now()
		next, err := f.watch(ctx, at)
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return true, nil
		case err != nil:
			return true, err
		case next == at && time.Since(begun) < time.Second:
			return true, fmt.Errorf("the watch ended at once")
		}
		at = next
	}
	return true, nil
}

// list sends all objects to the observer, and returns the resourceVersion of the list.
func (f *follower[T]) list(ctx context.Context) (string, error) {
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

// watch sends changes after a resourceVersion to the observer, until the server ends the watch.
// It returns the resourceVersion to resume from.
func (f *follower[T]) watch(ctx context.Context, at string) (string, error) {
	lasts := time.Duration(float64(minWatch) * (1 + rand.Float64()))
	response, err := f.get(ctx, "", url.Values{
		"watch": {"true"}, "resourceVersion": {at}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(int(lasts.Seconds()))},
	})
	if err != nil {
		return at, err
	}
	defer response.Body.Close()
	for events := NewEvents(response.Body); ; {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		next, err := f.tell(ctx, event.Type, event.Object)
		if err != nil {
			return at, err
		}
		at = next
	}
}

// tell sends an event to the observer, and returns its resourceVersion.
func (f *follower[T]) tell(ctx context.Context, of watch.EventType, data []byte) (string, error) {
	if of == watch.Error {
		var s metav1.Status
		if err := json.Unmarshal(data, &s); err != nil {
			return "", err
		}
		return "", &apierrors.StatusError{ErrStatus: s}
	}
	var at metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &at); err != nil {
		return "", err
	}
	if of == watch.Bookmark {
		return at.ResourceVersion, nil
	}
	one := new(T)
	if err := json.Unmarshal(data, one); err != nil {
		return "", err
	}
	if of == watch.Deleted {
		return at.ResourceVersion, f.observer.Delete(ctx, one)
	}
	return at.ResourceVersion, f.observer.Set(ctx, one)
}
