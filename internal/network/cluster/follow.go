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
	// minWatch is how long a watch lasts at least that nothing ends; it lasts up to twice that.
	minWatch = 5 * time.Minute
	// firstPause is how long to wait after the first failure; each further pause is longer, up to
	// lastPause.
	firstPause = 800 * time.Millisecond
	lastPause  = 30 * time.Second
)

// A Collection is what is followed.
type Collection struct {
	Path          string // of the list
	FieldSelector string
	// MetadataOnly asks for nothing else of the objects: they are PartialObjectMetadata.
	MetadataOnly bool
}

// An Observer is told of objects, in the order in which they change. It has a word to say: an error
// of any of its methods begins the list again.
type Observer[T any] interface {
	// Replace is told all that there is.
	Replace(ctx context.Context, all []*T) error
	// Set is told an object that is new, or was changed.
	Set(ctx context.Context, one *T) error
	// Delete is told an object that is gone, as it was last.
	Delete(ctx context.Context, one *T) error
}

// Follow tells an Observer what the objects of a collection are, as long as ctx lasts.
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

// follow lists, and watches for as long as the watch can go on from what was seen.
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

// list tells the observer all, and returns the resourceVersion of that.
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

// readList reads the collection. The timeout is for this request only, not for the observer.
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

// get asks for the collection.
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

// watch tells the observer what changes from a resourceVersion on, until the server ends the watch. It
// returns from where another one goes on.
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

// tell tells the observer of an event, and returns the resourceVersion of it.
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
