// Package console serves the console: pages with which a browser is a client of an API server.
//
// The pages in the folder pages are the sources, as a browser runs them: HTML, CSS and JavaScript modules,
// without a framework and without a build (decision 0045). They know an API server by its paths below a base,
// and send a bearer token with each request. No cookie and no client certificate is involved, so another
// site cannot send a request with the rights of the user.
//
// Pages serves the files, for an API server whose users have tokens. Local is the server of the command
// anykind console: it serves the files on a loopback address, and forwards requests to the API servers of a
// kubeconfig with the credentials there.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Root is the path of the console on an API server.
const Root = "/console/"

//go:embed pages
var files embed.FS

// A Config tells the pages about their server.
type Config struct {
	// Contexts are the API servers below the path /contexts/NAME. An API server has none: it is the only one, and
	// its paths begin at the root.
	Contexts []Context `json:"contexts"`
	// Reviews reports that the console reviews definitions.
	Reviews bool `json:"reviews,omitempty"`
}

// A Context is a user at an API server.
type Context struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	Namespace string `json:"namespace"`
	Current   bool   `json:"current,omitempty"`
	Error     string `json:"error,omitempty"` // of its kubeconfig
}

// policy is the Content-Security-Policy of the pages: scripts, styles and connections of this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A page is a file of the console.
type page struct {
	kind string // media type
	etag string
	raw  []byte
	gzip []byte // smaller than raw, or nil
}

// Pages returns the handler of the pages, below Root.
func Pages() http.Handler {
	pages := sync.OnceValue(read)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, Root)
		if name == "" {
			name = "index.html"
		}
		p, ok := pages()[name]
		switch {
		case name == "config":
			answer(w, Config{})
		case !ok:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the pages are read with GET or HEAD", http.StatusMethodNotAllowed)
		default:
			p.serve(w, r)
		}
	})
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	harden(h, policy)
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", p.etag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == p.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", p.kind)
	body := p.raw
	if p.gzip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = p.gzip
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone
	}
}

// harden sets the headers that keep a browser from doing more with an answer than the console needs.
func harden(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// read reads and compresses the files.
func read() map[string]*page {
	all := map[string]*page{}
	err := fs.WalkDir(files, "pages", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		p := &page{kind: mediaType(name), etag: `"` + hex.EncodeToString(sum[:12]) + `"`, raw: raw}
		if small := compress(raw); len(small) < len(raw) {
			p.gzip = small
		}
		all[strings.TrimPrefix(name, "pages/")] = p
		return nil
	})
	if err != nil {
		panic(err) // an embedded file cannot be read
	}
	return all
}

// mediaType returns the media type of a file. It does not depend on the machine for the types of the pages.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func compress(raw []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = z.Write(raw)
	_ = z.Close()
	return out.Bytes()
}

// answer sends a document of the console itself.
func answer(w http.ResponseWriter, document any) {
	harden(w.Header(), "default-src 'none'")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // the client is gone
}
