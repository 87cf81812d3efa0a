package discovery

import (
	"context"
	"encoding/json"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
)

// ownProfile is the profile of aggregated discovery without peers.
const ownProfile = "nopeer"

// withPeers returns the document of this server merged with those of its peers.
func (h *Handler) withPeers(ctx context.Context, own *document) *document {
	groups := h.options.Peers.Groups(ctx)
	if groups == nil {
		return own
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &h.cache
	cached := c.merged != nil && c.mergedOf == own && c.peers == groups
	h.options.Peers.Metrics().Merged(cached)
	if !cached {
		var list object.Tree
		if err := json.Unmarshal(own.doc, &list); err != nil {
			panic("discovery: " + err.Error()) // this package wrote it
		}
		list["items"] = groups.Merge(kind.List(list, "items"))
		c.merged, c.mergedOf, c.peers = newDocument(append(object.AppendJSON(nil, list), '\n')), own, groups
	}
	return c.merged
}
