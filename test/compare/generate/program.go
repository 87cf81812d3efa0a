package generate

// program sends three to ten requests for one object, so that later results depend on earlier
// requests.
func program(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") && r.Plural != "namespaces" })
	o := g.object(r)
	g.room(r)
	if g.chance(3) {
		g.applyOne(r, o, pathOf(r))
	} else {
		g.post(r, o)
	}
	for range 2 + g.IntN(8) {
		switch g.IntN(14) {
		case 0, 1:
			g.put(r, o)
		case 2, 3:
			g.anyPatch(r, o, pathOf(r))
		case 4, 5:
			g.applyOne(r, o, pathOf(r))
		case 6:
			g.get(r)
		case 7:
			if r.Has("status") {
				g.status(r, o)
			}
		case 8:
			if r.Has("scale") {
				g.scale(r)
			}
		case 9:
			if g.chance(2) {
				g.deleteOne(r)
			}
		case 10:
			if other := g.sibling(r); other != nil {
				g.anyPatch(other, g.object(other), pathOf(other))
			}
		case 11:
			g.label(r)
		case 12:
			g.post(r, o)
		case 13:
			// A valid object again, after any of the above.
			g.add(stepOf(g, r, o))
		}
	}
	g.get(r)
}

// sibling returns another version of a resource, nil if there is none.
func (g *G) sibling(r *Resource) *Resource {
	for _, other := range g.Resources {
		if other.Group == r.Group && other.Plural == r.Plural && other.Version != r.Version {
			return other
		}
	}
	return nil
}
