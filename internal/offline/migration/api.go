package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	migrations  = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
)

// A definition has the fields of a CustomResourceDefinition that matter here.
type definition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			Kind       string   `json:"kind"`
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
		Versions []struct {
			Name    string `json:"name"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

func (d *definition) kind() Kind {
	names := d.Spec.Names
	k := Kind{name: d.Metadata.Name, group: d.Spec.Group, stored: d.Status.StoredVersions}
	for _, name := range append([]string{names.Plural, names.Singular, names.Kind}, names.ShortNames...) {
		if name != "" {
			k.names = append(k.names, name)
		}
	}
	for _, v := range d.Spec.Versions {
		if v.Storage {
			k.storage = v.Name
		}
	}
	return k
}

// A migration is a StorageVersionMigration.
type migration struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Resource groupResource `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`

	gone bool
}

type groupResource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (m *migration) condition(name string) condition {
	for _, c := range m.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return condition{}
}

func (m *migration) is(name string) bool { return m.condition(name).Status == "True" }

func (m *migration) ended() bool { return m.gone || m.is("Succeeded") || m.is("Failed") }

// Messages of a running migration.
var (
	left     = regexp.MustCompile(`(\d+)/(\d+) objects not yet migrated`)
	verified = regexp.MustCompile(`(\d+) objects verified migrated`)
	trouble  = regexp.MustCompile(`(?s)transient error: (.*)`)
)

// read updates a state.
func (m *migration) read(s *State) {
	if m.is("Succeeded") {
		s.Left, s.Trouble = 0, ""
		return
	}
	message := m.condition("Running").Message
	s.Trouble = ""
	if found := trouble.FindStringSubmatch(message); found != nil {
		s.Trouble = found[1]
	}
	if found := left.FindStringSubmatch(message); found != nil {
		s.Left, _ = strconv.Atoi(found[1])
		s.Total, _ = strconv.Atoi(found[2])
	} else if found := verified.FindStringSubmatch(message); found != nil {
		s.Total, _ = strconv.Atoi(found[1])
		s.Left = 0
	}
}

func (s *Server) kinds(ctx context.Context) ([]Kind, error) {
	var list struct {
		Items []definition `json:"items"`
	}
	if err := s.do(ctx, http.MethodGet, definitions, nil, &list); err != nil {
		return nil, err
	}
	out := make([]Kind, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].kind()
	}
	return out, nil
}

func (s *Server) kind(ctx context.Context, name string) (Kind, error) {
	var d definition
	err := s.do(ctx, http.MethodGet, definitions+"/"+name, nil, &d)
	return d.kind(), err
}

// underWay returns the unfinished migration of a kind, or nil.
func (s *Server) underWay(ctx context.Context, k *Kind) (*migration, error) {
	var list struct {
		Items []migration `json:"items"`
	}
	err := s.do(ctx, http.MethodGet, migrations, nil, &list)
	if apiclient.Missing(err) {
		return nil, ErrUnavailable
	}
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.Resource.Resource+"."+m.Spec.Resource.Group == k.name && !m.ended() {
			return m, nil
		}
	}
	return nil, nil
}

// longest limits the name of the definition in the name of a migration.
const longest = 230

// ask creates a migration of a kind.
func (s *Server) ask(ctx context.Context, k *Kind) (*migration, error) {
	resource, _, _ := strings.Cut(k.name, ".")
	m := &migration{}
	return m, s.do(ctx, http.MethodPost, migrations, map[string]any{
		"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
		"metadata": map[string]any{"generateName": strings.TrimRight(k.name[:min(len(k.name), longest)], "-.") + "-"},
		"spec":     map[string]any{"resource": groupResource{Group: k.group, Resource: resource}},
	}, m)
}

// watch calls show with a migration after each change until it returns true, and returns the last
// state. It returns nil if the watch ends before that.
func (s *Server) watch(ctx context.Context, name string, show func(*migration) bool) (*migration, error) {
	query := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + name}, "timeoutSeconds": {"300"}}
	// A watch without a resourceVersion does not report a missing object, so a get comes first.
	var now migration
	err := s.do(ctx, http.MethodGet, migrations+"/"+name, nil, &now)
	switch {
	case apiclient.Missing(err):
		return &migration{gone: true}, nil
	case err != nil:
		return nil, err
	case show(&now):
		return &now, nil
	}
	response, err := s.send(ctx, http.MethodGet, migrations+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	for events := cluster.NewEvents(response.Body); ; {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		m := &migration{gone: e.Type == watch.Deleted}
		if e.Type == watch.Error {
			return nil, fmt.Errorf("the watch ended: %s", e.Object)
		}
		if err := json.Unmarshal(e.Object, m); err != nil {
			return nil, err
		}
		if show(m) {
			return m, nil
		}
	}
}

// passing reports whether a retry may succeed.
func passing(err error) bool {
	code := apiclient.Code(err)
	return !errors.Is(err, ErrUnavailable) && (code == 0 || code >= http.StatusInternalServerError || code == http.StatusTooManyRequests)
}

// reason returns the text of a request's error without method and URL.
func reason(err error) string {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	return err.Error()
}

// do sends a request and decodes the response into out, unless out is nil.
func (s *Server) do(ctx context.Context, method, path string, in, out any) error {
	response, err := s.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(out)
}

// send sends a request and returns a successful response.
func (s *Server) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := s.Client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, apiclient.Refused(response)
}
