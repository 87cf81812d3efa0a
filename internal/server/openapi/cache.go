package openapi

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
)

// A cache holds documents of the Handler. Handler.mu guards it. Any part may be dropped at any
// time.
type cache struct {
	set *resource.Set

	// Of the whole set.
	list  *documentList
	whole wholeDocument

	fingerprints resource.PerVersion[fingerprint]

	documents map[string]*openDocument
	shared    *shared // between documents

	used  time.Time // last request for anything but documents
	timer *time.Timer
}

// A fingerprint changes with the OpenAPI of a resource.
type fingerprint [sha256.Size]byte

// follow returns the current Set, and drops cached parts of others.
func (h *Handler) follow() *resource.Set {
	c := &h.cache
	set := h.catalog.Set()
	if c.set == set {
		return set
	}
	c.set = set
	c.list = nil
	c.whole.checked = false
	for name, d := range c.documents {
		if hash, ok := h.hash(set, name); !ok || hash != d.hash {
			delete(c.documents, name)
		}
	}
	return set
}

// touch returns the time of a request, and starts the timer that drops unused documents.
func (h *Handler) touch() time.Time {
	now := time.Now()
	if h.cache.timer == nil {
		h.cache.timer = time.AfterFunc(h.options.Idle, h.sweep)
	}
	return now
}

// sweep drops what was not used for Idle.
func (h *Handler) sweep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, before := &h.cache, time.Now().Add(-h.options.Idle)
	maps.DeleteFunc(c.documents, func(_ string, d *openDocument) bool { return !d.used.After(before) })
	if !c.used.After(before) {
		*c = cache{documents: c.documents, shared: c.shared, timer: c.timer}
	}
	if len(c.documents) == 0 {
		c.documents, c.shared = nil, nil
		if c.set == nil {
			c.timer = nil
			return
		}
	}
	c.timer.Reset(h.options.Idle)
}

// fingerprint returns the fingerprint of a resource in one version.
func (h *Handler) fingerprint(d *resource.Definition, v *resource.Version) fingerprint {
	return h.cache.fingerprints.Get(d, v, fingerprintOf)
}

func fingerprintOf(d *resource.Definition, v *resource.Version) fingerprint {
	data := make([]byte, 0, 512)
	add := func(values ...string) {
		data = binary.AppendUvarint(data, uint64(len(values)))
		for _, s := range values {
			data = binary.AppendUvarint(data, uint64(len(s)))
			data = append(data, s...)
		}
	}
	scope, origin := "cluster", "custom"
	if d.Namespaced {
		scope = "namespaced"
	}
	if d.Dialect.TypedOpenAPI {
		origin = "native"
	}
	if d.ReturnsDeletedIn(v) {
		origin += " returned"
	}
	add(d.Group, v.Name, d.Plural, d.Kind, d.ListKind, scope, origin)
	add(d.ListedVerbs()...)
	for i := range v.Subresources {
		s := &v.Subresources[i]
		add(s.Name, s.Kind.Group, s.Kind.Version, s.Kind.Kind)
		add(s.Verbs...)
		add(fmt.Sprintf("%T %t %t", s.Options, s.Connecter != nil, s.PathsBelow))
	}
	for body := range bodies(v) {
		add(modelKey(body))
	}
	add(slices.Sorted(maps.Keys(v.SelectableFields))...)
	add(modelKey(v))
	return sha256.Sum256(data)
}

// modelKey identifies a model, if possible without building it.
func modelKey(v *resource.Version) string {
	if v.Fingerprint != "" || v.Schema == nil {
		return v.Fingerprint
	}
	return string(encode(v.Schema.Model()))
}
