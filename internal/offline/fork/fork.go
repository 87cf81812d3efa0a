// Package fork is the client of the forks of a server: copies of it that are served below its paths.
//
// It makes and deletes forks, and plans the way of their changes into the server (merge.go). Merged
// objects come from internal/object/merge, and the writes are those of internal/offline/history. The package knows the API of forks, and the
// objects that controllers make by themselves.
package fork

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/history"
)

// path is the path of all forks.
const path = "/forks"

// A Spec describes a new fork. Fields other than the Name may be empty.
type Spec struct {
	Name            string `json:"name"`
	AsOf            string `json:"asOf,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Webhooks        string `json:"webhooks,omitempty"`
	Lifetime        string `json:"lifetime,omitempty"`
	// Replay repeats in the fork the later changes of the server; nil for none.
	Replay *Replay `json:"replay,omitempty"`
}

// A Replay has a speed, 0 for as fast as possible, and the users whose changes are left out.
type Replay struct {
	Speed   float64  `json:"speed,omitempty"`
	Without []string `json:"without,omitempty"`
}

// A Fork is a fork of a server.
type Fork struct {
	Spec
	Path    string     `json:"path"`
	Created time.Time  `json:"created"`
	By      string     `json:"by"`
	Expires *time.Time `json:"expires,omitempty"`
	// Replayed is the progress of a replay.
	Replayed *struct {
		Time  time.Time `json:"time"`
		Done  bool      `json:"done"`
		Error string    `json:"error"`
	} `json:"replayed,omitempty"`
}

// Client manages the forks of a server.
type Client struct{ apiclient.Server }

// Of returns the client of the forks of a server. The server of a fork is the one that it is a fork of.
func Of(s apiclient.Server) Client {
	at := strings.LastIndex(s.URL, path+"/")
	if at >= 0 && !strings.Contains(s.URL[at+len(path+"/"):], "/") {
		s.URL = s.URL[:at]
	}
	return Client{s}
}

// Make makes a fork.
func (c Client) Make(ctx context.Context, s Spec) (*Fork, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var made Fork
	_, err = c.Do(ctx, apiclient.Request{Method: http.MethodPost, Path: path, Body: body}, &made)
	return &made, explained(err)
}

// List returns all forks.
func (c Client) List(ctx context.Context) ([]Fork, error) {
	var list struct {
		Items []Fork `json:"items"`
	}
	err := c.Get(ctx, path, &list)
	return list.Items, explained(err)
}

// Delete deletes a fork.
func (c Client) Delete(ctx context.Context, name string) error {
	_, err := c.Do(ctx, apiclient.Request{Method: http.MethodDelete, Path: path + "/" + url.PathEscape(name)}, nil)
	return err
}

// explained names the program that has forks, if the server does not.
func explained(err error) error {
	if apiclient.Missing(err) {
		return fmt.Errorf("the server has no forks: it is none of anykind serve (%w)", err)
	}
	return err
}

// in returns a client of a fork, and the kinds that it serves.
func (c Client) in(ctx context.Context, name string) (apiclient.Server, []apiclient.Kind, error) {
	var f Fork
	if err := c.Get(ctx, path+"/"+url.PathEscape(name), &f); err != nil {
		return apiclient.Server{}, nil, err
	}
	s := apiclient.Server{Client: c.Client, URL: c.URL + f.Path, Name: "the fork"}
	kinds, err := s.Kinds(ctx)
	return s, kinds, err
}

// A change is a change of an object in a fork.
type change struct {
	history.Object
	history.Change
}

// changes returns the objects of a fork that differ from those of its first state.
func (c Client) changes(ctx context.Context, name string) ([]*change, error) {
	s, kinds, err := c.in(ctx, name)
	if err != nil {
		return nil, err
	}
	var list history.ChangeList
	if err := s.Get(ctx, "/changes", &list); err != nil {
		return nil, err
	}
	var all []*change
	for _, item := range list.Items {
		state := item.State()
		k := apiclient.Of(kinds, state)
		if k == nil {
			return nil, fmt.Errorf("the fork does not list the kind %s of %s", object.Kind(state), object.APIVersion(state))
		}
		all = append(all, &change{history.Object{Kind: k, Namespace: object.Namespace(state), Name: object.Name(state)}, item})
	}
	return all, nil
}

// Changes returns the objects of a fork that differ from those of its first state.
func (c Client) Changes(ctx context.Context, name string) ([]history.Changed, error) {
	all, err := c.changes(ctx, name)
	changed := make([]history.Changed, len(all))
	for i, c := range all {
		changed[i] = history.Changed{Object: c.Object, Before: c.Before, After: c.Change.Object}
	}
	return changed, err
}
