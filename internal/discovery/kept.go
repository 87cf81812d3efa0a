package discovery

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/resource"
)

// kept is what the Handler has made and may be asked for again. Handler.mu
// guards it. Everything in it can be thrown away at any time.
type kept struct {
	set *resource.Set

	// Of set as a whole.
	core, others *aggregate
	size         int // of the last aggregate, which the next will be near to
	list         *documentList
	whole        contentTag

	// Of single Definitions, so that a change of one is not the work of all.
	items        map[definitionVersion][]byte
	fingerprints map[definitionVersion]fingerprint

	documents map[string]*openDocument
	shared    *shared // between documents

	used  time.Time // when anything but documents was last asked for
	timer *time.Timer
}

type definitionVersion struct {
	definition *resource.Definition
	version    *resource.Version
}

// A fingerprint is another one whenever the OpenAPI of a resource is another.
type fingerprint [sha256.Size]byte

// follow throws away what is not of the Set of now and returns that Set.
func (h *Handler) follow() *resource.Set {
	k := &h.kept
	set := h.catalog.Set()
	if k.set == set {
		return set
	}
	k.set = set
	k.core, k.others, k.list = nil, nil, nil
	k.whole.checked = false
	for name, d := range k.documents {
		if hash, ok := h.hash(set, name); !ok || hash != d.hash {
			delete(k.documents, name)
		}
	}
	return set
}

// touch notes that something was asked for, and sees to it that it is forgotten
// when nobody asks any more.
func (h *Handler) touch() time.Time {
	now := time.Now()
	if h.kept.timer == nil {
		h.kept.timer = time.AfterFunc(h.options.Idle, h.sweep)
	}
	return now
}

// sweep forgets what nobody asked for since one Idle ago.
func (h *Handler) sweep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, before := &h.kept, time.Now().Add(-h.options.Idle)
	maps.DeleteFunc(k.documents, func(_ string, d *openDocument) bool { return !d.used.After(before) })
	if !k.used.After(before) {
		*k = kept{documents: k.documents, shared: k.shared, timer: k.timer}
	}
	if len(k.documents) == 0 {
		k.documents, k.shared = nil, nil
		if k.set == nil {
			k.timer = nil
			return
		}
	}
	k.timer.Reset(h.options.Idle)
}

// aggregate returns the aggregate of the core group or of all others.
func (h *Handler) aggregate(core bool) *aggregate {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.follow()
	h.kept.used = h.touch()
	kept := &h.kept.others
	if core {
		kept = &h.kept.core
	}
	if *kept == nil {
		prune(&h.kept.items, set)
		*kept = buildAggregate(set, core, h.item, h.kept.size)
		h.kept.size = len((*kept).doc)
	}
	return *kept
}

// item returns the part of one resource in one version of an aggregate.
func (h *Handler) item(d *resource.Definition, v *resource.Version) []byte {
	key := definitionVersion{d, v}
	item := h.kept.items[key]
	if item == nil {
		item = aggregatedResource(d, v)
		h.kept.items[key] = item
	}
	return item
}

// prune drops from m what is of Definitions that are not in the Set, and makes
// m if there is none.
func prune[T any](m *map[definitionVersion]T, set *resource.Set) {
	if *m == nil {
		*m = map[definitionVersion]T{}
	}
	maps.DeleteFunc(*m, func(k definitionVersion, _ T) bool {
		return set.Lookup(k.definition.Group, k.definition.Plural) != k.definition
	})
}

// fingerprint returns the fingerprint of a resource in one version.
func (h *Handler) fingerprint(d *resource.Definition, v *resource.Version) fingerprint {
	key := definitionVersion{d, v}
	f, ok := h.kept.fingerprints[key]
	if !ok {
		f = fingerprintOf(d, v)
		if h.kept.fingerprints == nil {
			h.kept.fingerprints = map[definitionVersion]fingerprint{}
		}
		h.kept.fingerprints[key] = f
	}
	return f
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
	if v.New != nil {
		origin = "native"
	}
	if d.ReturnsDeleted {
		origin += " returned"
	}
	add(d.Group, v.Name, d.Plural, d.Kind, d.ListKind, scope, origin)
	add(verbs(d, v)...)
	for i := range v.Subresources {
		s := &v.Subresources[i]
		add(s.Name, s.Kind.Group, s.Kind.Version, s.Kind.Kind)
		add(s.Verbs...)
	}
	add(slices.Sorted(maps.Keys(v.SelectableFields))...)
	if v.Fingerprint != "" {
		add(v.Fingerprint)
	} else if v.Schema != nil {
		add(string(encode(v.Schema.Model())))
	}
	return sha256.Sum256(data)
}
