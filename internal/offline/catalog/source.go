package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/anykind/anykind/internal/object"
)

// Add fetches a source, and stores its definitions under a name. A digest that is not empty is that
// of an earlier Entry: other content is rejected.
func (c *Catalog) Add(ctx context.Context, name, source, digest string) (Entry, error) {
	if !names.MatchString(name) {
		return Entry{}, fmt.Errorf("%q is no name of an entry: want small letters, digits, - and .", name)
	}
	entries, err := c.Entries()
	if err != nil {
		return Entry{}, err
	}
	if _, err := find(entries, name); err == nil {
		return Entry{}, fmt.Errorf("the catalog has an entry %q: anykind catalog update %[1]s fetches it again, and anykind catalog remove %[1]s removes it", name)
	}
	if source, err = absolute(source); err != nil {
		return Entry{}, err
	}
	e, trees, err := c.fetch(ctx, Entry{Name: name, Source: source})
	if err != nil {
		return Entry{}, err
	}
	if pinned, _, err := pin(e, trees); err == nil && digest != "" && pinned.Digest != digest {
		return Entry{}, fmt.Errorf("%s has the digest %s, and not %s: nothing is added", source, pinned.Digest, digest)
	}
	return c.put(e, trees)
}

// absolute makes the path of a file, a folder or a local repository absolute, because an update may run
// in another folder.
func absolute(source string) (string, error) {
	path, rest, inside := source, "", false
	if !strings.Contains(source, "://") {
		path, rest, inside = strings.Cut(source, "//")
	}
	if _, err := os.Stat(path); err != nil {
		return source, nil
	}
	path, err := filepath.Abs(path)
	if inside {
		path += "//" + rest
	}
	return path, err
}

// Update fetches the source of an entry again, and pins its new content. It returns the entry before
// and after.
func (c *Catalog) Update(ctx context.Context, name string) (old, now Entry, err error) {
	entries, err := c.Entries()
	if err != nil {
		return old, now, err
	}
	at, err := find(entries, name)
	if err != nil {
		return old, now, err
	}
	old = entries[at]
	e, trees, err := c.fetch(ctx, Entry{Name: old.Name, Source: old.Source})
	if err != nil {
		return old, now, err
	}
	now, err = c.put(e, trees)
	return old, now, err
}

// fetch reads the definitions of the source of an entry.
func (c *Catalog) fetch(ctx context.Context, e Entry) (Entry, []object.Tree, error) {
	temporary, err := os.MkdirTemp("", "anykind-")
	if err != nil {
		return e, nil, err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	path := e.Source
	repository, isGit := parseGit(e.Source)
	switch {
	case isGit:
		if e.Commit, err = repository.fetch(ctx, temporary); err != nil {
			return e, nil, fmt.Errorf("%s: %w", e.Source, err)
		}
		path = filepath.Join(temporary, repository.path)
	case strings.HasPrefix(e.Source, "https://"):
		path = filepath.Join(temporary, "definitions.yaml")
		if err := c.download(ctx, e.Source, path); err != nil {
			return e, nil, fmt.Errorf("%s: %w", e.Source, err)
		}
	case strings.Contains(e.Source, "://"):
		return e, nil, fmt.Errorf("%s is no source: want a file, a folder, an https URL, or a repository of git such as https://example.com/a.git//config/crd?ref=v1.0", e.Source)
	}
	trees, err := c.Read([]string{path})
	if err == nil && len(trees) == 0 {
		err = fmt.Errorf("%s has no CustomResourceDefinitions", e.Source)
	}
	if err != nil && path != e.Source {
		err = errors.New(strings.ReplaceAll(err.Error(), path, e.Source))
	}
	return e, trees, err
}

// maxDownload limits the size of a download.
const maxDownload = 64 << 20

func (c *Catalog) download(ctx context.Context, source, to string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return err
	}
	client := *c.Client
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" || len(via) > 10 {
			return fmt.Errorf("it redirects to %s", r.URL)
		}
		return nil
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxDownload+1))
	if err != nil {
		return err
	}
	if len(data) > maxDownload {
		return fmt.Errorf("the file is larger than %d MiB", maxDownload>>20)
	}
	return os.WriteFile(to, data, 0o600)
}

// A repository is a source in git, in the form of kustomize: URL//PATH?ref=REVISION.
type repository struct{ url, path, ref string }

// parseGit reports whether a source is a repository of git.
func parseGit(source string) (repository, bool) {
	rest, query, _ := strings.Cut(strings.TrimPrefix(source, "git+"), "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return repository{}, false
	}
	scheme, place, remote := strings.Cut(rest, "://")
	if !remote {
		scheme, place = "", rest
	}
	where, path, hasPath := strings.Cut(place, "//")
	r := repository{url: where, path: filepath.FromSlash(path), ref: values.Get("ref")}
	if remote {
		r.url = scheme + "://" + where
	}
	isGit := strings.HasPrefix(source, "git+") || strings.HasSuffix(where, ".git") || hasPath && remote || scheme == "ssh" || scheme == "file" || strings.HasPrefix(source, "git@")
	return r, isGit && filepath.IsLocal(filepath.Join(".", r.path)) && !strings.HasPrefix(r.url, "-")
}

// fetch checks a revision out into a folder, and returns its commit.
func (r repository) fetch(ctx context.Context, folder string) (commit string, err error) {
	git := func(args ...string) string {
		if err != nil {
			return ""
		}
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...)
		out, failed := cmd.Output()
		var exit *exec.ExitError
		switch {
		case errors.Is(failed, exec.ErrNotFound):
			err = errors.New("the program git was not found: install it, or add its folder to PATH")
		case errors.As(failed, &exit):
			err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
		default:
			err = failed
		}
		return strings.TrimSpace(string(out))
	}
	ref := r.ref
	if ref == "" {
		ref = "HEAD"
	}
	if strings.HasPrefix(ref, "-") {
		return "", fmt.Errorf("%q is not a revision", ref)
	}
	git("init", "-q")
	git("fetch", "-q", "--depth", "1", r.url, ref)
	git("checkout", "-q", "FETCH_HEAD")
	return git("rev-parse", "HEAD"), err
}
