package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/etcdsnapshot"
	"github.com/anykind/anykind/internal/store/kv"
)

// Stored is a source of stored objects. Its methods only read.
type Stored interface {
	// Version returns the version in which Each returns the objects of a kind, given its new
	// definition.
	Version(ctx context.Context, now *v1.CustomResourceDefinition) (string, error)
	// Each calls visit for each object, in sequence. all is the number of objects, as far as it is
	// known.
	Each(ctx context.Context, now *v1.CustomResourceDefinition, visit func(t object.Tree, all int) error) error
}

// A Server is a running server.
type Server struct {
	Client *http.Client
	URL    string
	// Namespace limits the objects; empty is all namespaces.
	Namespace string
}

// definitionPath precedes the names of definitions.
const definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// pageSize is the limit of each list request.
const pageSize = 250

// Version implements Stored: the new storage version if it is already served, so that the server
// converts the objects.
func (s *Server) Version(ctx context.Context, now *v1.CustomResourceDefinition) (string, error) {
	var old v1.CustomResourceDefinition
	if _, err := s.get(ctx, definitionPath+now.Name, &old); err != nil {
		return "", err
	}
	storage := storageVersion(now)
	served := ""
	for _, v := range old.Spec.Versions {
		if !v.Served {
			continue
		}
		if v.Name == storage {
			return storage, nil
		}
		for _, w := range now.Spec.Versions {
			if w.Name == v.Name {
				served = v.Name
			}
		}
	}
	if served == "" {
		return "", fmt.Errorf("%s: the new definition has no version that is served now: all objects would become unreadable", now.Name)
	}
	return served, nil
}

func storageVersion(d *v1.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// Each implements Stored.
func (s *Server) Each(ctx context.Context, now *v1.CustomResourceDefinition, visit func(object.Tree, int) error) error {
	version, err := s.Version(ctx, now)
	if err != nil {
		return err
	}
	base := "/apis/" + now.Spec.Group + "/" + version
	if s.Namespace != "" && now.Spec.Scope == v1.NamespaceScoped {
		base += "/namespaces/" + url.PathEscape(s.Namespace)
	}
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	done := 0
	for {
		var page struct {
			Metadata struct {
				Continue           string
				RemainingItemCount int
			}
			Items []json.RawMessage
		}
		expired, err := s.get(ctx, base+"/"+now.Spec.Names.Plural+"?"+query.Encode(), &page)
		if expired != "" { // the rest of the list may be of a later revision
			query.Set("continue", expired)
			continue
		}
		if err != nil {
			return err
		}
		all := done + len(page.Items) + page.Metadata.RemainingItemCount
		for _, item := range page.Items {
			t, _, err := codec.Decode(codec.JSON, item)
			if err != nil {
				return err
			}
			if err := visit(t, all); err != nil {
				return err
			}
		}
		done += len(page.Items)
		if page.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// get reads a document. expired is the continue token for the rest of a list whose revision has been
// compacted.
func (s *Server) get(ctx context.Context, path string, out any) (expired string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := s.Client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return "", json.NewDecoder(answer.Body).Decode(out)
	}
	err = apiclient.Refused(answer)
	var refused *apiclient.Refusal
	if errors.As(err, &refused) && refused.Code == http.StatusGone && refused.Status.Continue != "" {
		return refused.Status.Continue, nil
	}
	return "", err
}

// A File has the objects of a stopped server.
type File struct {
	mapped func(prefix string) (*kv.Mapping, error)
	keys   *encrypt.Keyring
}

// Folder returns the objects of a data directory. keys decrypt them; nil reads plain ones only.
func Folder(dir string, keys *encrypt.Keyring) *File {
	return &File{func(prefix string) (*kv.Mapping, error) {
		return app.MapStore(filepath.Join(dir, app.StoreFile), prefix)
	}, keys}
}

// Snapshot is Folder for an etcd snapshot file, as written by etcdctl snapshot save.
func Snapshot(file string, keys *encrypt.Keyring) *File {
	return &File{func(prefix string) (*kv.Mapping, error) { return etcdsnapshot.Mapped(file, prefix) }, keys}
}

// Version implements Stored.
func (f *File) Version(_ context.Context, now *v1.CustomResourceDefinition) (string, error) {
	return storageVersion(now), nil
}

var errNoKeys = errors.New("the object is encrypted: name the keys with --encryption-provider-config")

// Each implements Stored.
func (f *File) Each(ctx context.Context, now *v1.CustomResourceDefinition, visit func(object.Tree, int) error) error {
	stored, err := f.mapped(StoragePrefix(now))
	if err != nil {
		return err
	}
	defer stored.Release()
	for _, r := range stored.Records {
		value := r.Value
		switch {
		case f.keys != nil:
			value, err = f.keys.Open(ctx, r.Key, value)
		case encrypt.Encrypted(value):
			err = errNoKeys
		}
		var t object.Tree
		if err == nil {
			t, _, err = codec.Decode(codec.JSON, builtin.StoredJSON(nil, r.Key, value))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Key, err)
		}
		if err := visit(t, len(stored.Records)); err != nil {
			return err
		}
	}
	return nil
}
