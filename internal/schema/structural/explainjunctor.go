package structural

// junctors explains allOf, anyOf, oneOf and not. Inside them, unchanged values are checked too.
func (e *explainer) junctors(x *limits, v any, path string) (r outcome) {
	r.score++
	if x == nil {
		return r
	}
	e.anyOf(x.anyOf, v, path, &r)
	e.oneOf(x.oneOf, v, path, &r)
	e.allOf(x.allOf, v, path, &r)
	if x.not != nil && x.not.valid(v) {
		r.add(e.sayWhole("%q must not validate the schema (not)", path))
	}
	return r
}

func (e *explainer) anyOf(alternatives []*node, v any, path string, r *outcome) {
	if len(alternatives) == 0 {
		return
	}
	var best *outcome
	for _, n := range alternatives {
		result := e.explain(n, v, path, nil)
		if len(result.faults) == 0 {
			r.merge(result)
			return
		}
		if best == nil || result.score > best.score {
			best = &result
		}
	}
	r.add(e.sayWhole("%q must validate at least one schema (anyOf)", path))
	r.merge(*best)
}

func (e *explainer) oneOf(alternatives []*node, v any, path string, r *outcome) {
	if len(alternatives) == 0 {
		return
	}
	var best, first *outcome
	valid := 0
	for _, n := range alternatives {
		result := e.explain(n, v, path, nil)
		switch {
		case len(result.faults) == 0:
			valid++
			if first == nil {
				first = &result
			}
		case valid == 0 && (best == nil || result.score > best.score):
			best = &result
		}
	}
	switch valid {
	case 0:
		r.add(e.sayWhole("%q must validate one and only one schema (oneOf). Found none valid", path))
		r.merge(*best)
	case 1:
		r.merge(*first)
	default:
		r.add(e.sayWhole("%q must validate one and only one schema (oneOf). Found %d valid alternatives", path, valid))
	}
}

func (e *explainer) allOf(all []*node, v any, path string, r *outcome) {
	if len(all) == 0 {
		return
	}
	valid := 0
	for _, n := range all {
		result := e.explain(n, v, path, nil)
		if len(result.faults) == 0 {
			valid++
		}
		r.merge(result)
	}
	switch valid {
	case len(all):
	case 0:
		r.add(e.sayWhole("%q must validate all the schemas (allOf). None validated", path))
	default:
		r.add(e.sayWhole("%q must validate all the schemas (allOf)", path))
	}
}
