// Package history is the client of the history that a server keeps: the changes of objects, the change
// that set each field, the differences between two moments, and the undo of changes.
//
// It knows the API of the history, and reads managedFields and Events of a server without one. Differences and undone
// objects come from internal/object/merge, and blame (blame.go) is a function of trees, too.
package history

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// ErrNone reports a server without a history.
var ErrNone = errors.New("this server keeps no history: start it with anykind serve --history=30d")

// A ChangeList is the answer of a server to a request for changes. The oldest change comes first.
type ChangeList struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   metav1.ListMeta `json:"metadata"`
	Items      []Change        `json:"items"`
}

// A Change is one write of an object. The fields from User to Request are empty if unknown.
type Change struct {
	Revision    string      `json:"revision"`
	Time        time.Time   `json:"time"`
	Type        string      `json:"type"`
	User        string      `json:"user,omitempty"`
	Verb        string      `json:"verb,omitempty"`
	Manager     string      `json:"manager,omitempty"`
	Subresource string      `json:"subresource,omitempty"`
	Request     string      `json:"request,omitempty"`
	Error       string      `json:"error,omitempty"` // the reason for a missing object, such as a failed conversion
	Before      object.Tree `json:"before,omitempty"`
	Object      object.Tree `json:"object,omitempty"`
}

// The types of a Change.
const (
	Added   = "ADDED"
	Deleted = "DELETED"
)

// State returns the object of the change: the last one for a deletion.
func (c *Change) State() object.Tree {
	if c.Type == Deleted || c.Object == nil {
		return c.Before
	}
	return c.Object
}

// An Object names one object, or all objects of a kind for no Name. Without a Namespace, they are those
// of all namespaces.
type Object struct {
	*apiclient.Kind
	Namespace, Name string
}

func (o Object) path() string { return o.Kind.Path(o.Namespace, o.Name) }

// Title names the object in messages.
func (o Object) Title() string {
	if o.Name == "" {
		return o.GroupResource().String()
	}
	return o.Named(o.Namespace, o.Name)
}

// Client reads and writes the history of a server.
type Client struct {
	apiclient.Server
	// Manager is the field manager of writes; the default is that of an undo.
	Manager string
}

// Changes returns the changes of an object or of all objects of a kind: the newest limit ones unless
// limit is 0, and those after a revision unless it is "".
func (c Client) Changes(ctx context.Context, o Object, limit int, since string) (*ChangeList, error) {
	query := url.Values{"history": {"true"}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if since != "" {
		query.Set("since", since)
	}
	var list ChangeList
	err := c.Get(ctx, o.path()+"?"+query.Encode(), &list)
	if refusesHistory(err) || err == nil && list.Kind != "ChangeList" { // Kubernetes ignores the parameter
		return nil, ErrNone
	}
	return &list, err
}

// refusesHistory reports the answer of a server of this program that keeps no history.
func refusesHistory(err error) bool {
	var r *apiclient.Refusal
	return errors.As(err, &r) && r.Code == http.StatusBadRequest && strings.Contains(r.Status.Message, "--history")
}

// Kept returns ErrNone if the server keeps no history of an object or a kind. Other servers ignore the
// parameters of a history, and return the present state.
func (c Client) Kept(ctx context.Context, o Object) error {
	_, err := c.Changes(ctx, o, 1, "")
	if apiclient.Missing(err) {
		return nil // the request that follows says so
	}
	return err
}

// After returns the changes from a time on.
func (c Client) After(ctx context.Context, o Object, since time.Time) (*ChangeList, error) {
	revision := ""
	if o.Name == "" { // fewer changes have to be read
		var at struct {
			Metadata metav1.ListMeta `json:"metadata"`
		}
		query := url.Values{"asOf": {stamp(since)}, "limit": {"1"}}
		err := c.Get(ctx, o.path()+"?"+query.Encode(), &at)
		switch {
		case refusesHistory(err):
			return nil, ErrNone
		case err == nil:
			revision = at.Metadata.ResourceVersion
		case apiclient.Code(err) != http.StatusGone: // the history is shorter
			return nil, err
		}
	}
	if revision != "" {
		if err := c.Kept(ctx, o); err != nil { // the revision may be that of now
			return nil, err
		}
	}
	list, err := c.Changes(ctx, o, 0, revision)
	if err != nil {
		return nil, err
	}
	list.Since(since)
	return list, nil
}

// Since drops the changes before a time.
func (l *ChangeList) Since(t time.Time) {
	l.Items = slices.DeleteFunc(l.Items, func(c Change) bool { return c.Time.Before(t) })
}

// stamp formats a time for asOf.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Forget takes an object out of the past.
func (c Client) Forget(ctx context.Context, o Object) error {
	body := object.AppendJSON(nil, object.Tree{"group": o.Group, "resource": o.Resource, "namespace": o.Namespace, "name": o.Name})
	_, err := c.Do(ctx, apiclient.Request{Method: http.MethodPost, Path: "/history/forget", Body: body}, nil)
	if refusesHistory(err) || apiclient.Missing(err) {
		return ErrNone
	}
	return err
}
