package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

type rawMessage = json.RawMessage

type toMetadataParams struct {
	HubPath          string `json:"hubPath"`
	Key              string `json:"key"`
	Serialization    string `json:"serialization"`
	RestoreOnReverse bool   `json:"restoreOnReverse"`
}

type fromMetadataParams struct {
	SpokePath      string `json:"spokePath"`
	Key            string `json:"key"`
	Serialization  string `json:"serialization"`
	StashOnReverse bool   `json:"stashOnReverse"`
}

// stash is a field of a that is a label or an annotation in the other version. If it is not kept, it
// comes from metadata, or goes there, but not both.
func stash(c *compiler, a *side, where string, p named, key, form string, kept bool) {
	from, schema := c.claim(a, p.name, p.paths[0])
	if from == nil {
		return
	}
	if c.depth > 0 {
		c.fail(field.Forbidden(c.rule.at, "the elements of a list have no metadata"))
		return
	}
	errs := validation.IsQualifiedName(key)
	if where == "annotations" {
		errs = validation.IsQualifiedName(strings.ToLower(key))
	}
	for _, msg := range errs {
		c.invalid("key", key, "%s", msg)
	}
	switch {
	case form != "JSON" && form != "String":
		c.fail(field.NotSupported(c.rule.at.Child("serialization"), form, []string{"JSON", "String"}))
	case where == "labels" && form == "JSON" && kindOf(schema) == text && p.name == "spokePath":
		c.fail(field.NotSupported(c.rule.at.Child("serialization"), form, []string{"String"}))
	case form == "String" && kindOf(schema) != text:
		c.invalid("serialization", form, "%s is not a string", from)
	}
	to := path{"metadata", where, key}
	// The rule of a hub field writes metadata of the spoke; that of a spoke field reads metadata of the hub.
	writes, reads := true, kept
	if a == &c.spoke {
		writes, reads = kept, true
	}
	out := step{from: a.taking(from)}
	if writes {
		out.to = []target{{path: to}}
		out.eval = stashing(from, to, where, form)
	} else {
		// The value of metadata is another one: it does not belong to this version.
		out.from = append(out.from, taken{to, 1})
	}
	a.step(out)
	back := step{from: []taken{{to, 1}}}
	if reads {
		back.to = a.other.writing(from)
		back.eval = unstashing(from, to, form)
	}
	a.other.step(back)
	if !writes || !reads {
		a.loses = true
	}
}

func stashing(from, to path, where, form string) func(object.Tree, *writes) error {
	return func(in object.Tree, w *writes) error {
		v, ok := from.get(in)
		if !ok {
			return nil
		}
		said, isText := v.(string)
		switch {
		case form == "JSON":
			said = string(object.AppendJSON(nil, v))
		case !isText:
			return field.Invalid(from.field(), v, "must be a string")
		}
		if where == "labels" {
			if msgs := validation.IsValidLabelValue(said); len(msgs) > 0 {
				return field.Invalid(from.field(), v, "is a label in the other version: "+msgs[0])
			}
		}
		w.set(to, said)
		return nil
	}
}

func unstashing(from, to path, form string) func(object.Tree, *writes) error {
	return func(in object.Tree, w *writes) error {
		v, ok := to.get(in)
		said, isText := v.(string)
		if !ok || !isText {
			return nil
		}
		if form == "String" {
			w.set(from, said)
			return nil
		}
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(said), &value); err != nil {
			return field.Invalid(to.field(), said, "is not the JSON of a value: "+err.Error())
		}
		w.set(from, value)
		return nil
	}
}

type remapParams struct {
	Path    string `json:"path"`
	Mapping []struct {
		Hub   any `json:"hub"`
		Spoke any `json:"spoke"`
	} `json:"mapping"`
	OnUnmappedHubValue   string `json:"onUnmappedHubValue"`
	OnUnmappedSpokeValue string `json:"onUnmappedSpokeValue"`
}

// remap maps the values of a field.
func remap(c *compiler, p *remapParams) {
	hub, x := c.claim(&c.hub, "path", p.Path)
	spoke, y := c.claim(&c.spoke, "path", p.Path)
	dropHub, ok1 := c.drops("onUnmappedHubValue", p.OnUnmappedHubValue)
	dropSpoke, ok2 := c.drops("onUnmappedSpokeValue", p.OnUnmappedSpokeValue)
	if hub == nil || spoke == nil || !ok1 || !ok2 {
		return
	}
	forth, back := map[any]any{}, map[any]any{}
	for i, m := range p.Mapping {
		for _, v := range []struct {
			value any
			is    kind
		}{{m.Hub, kindOf(x)}, {m.Spoke, kindOf(y)}} {
			if !fits(v.value, v.is) {
				c.fail(field.Invalid(c.rule.at.Child("mapping").Index(i), v.value, fmt.Sprintf("%s has the type %s", p.Path, v.is)))
				return
			}
		}
		if was, ok := forth[unified(m.Hub)]; ok && !object.Equal(was, m.Spoke) {
			c.fail(field.Duplicate(c.rule.at.Child("mapping").Index(i).Child("hub"), m.Hub))
		}
		forth[unified(m.Hub)] = m.Spoke
		if _, ok := back[unified(m.Spoke)]; ok {
			c.hub.loses = true // several hub values become one
			c.warn("several values of version %s become %v", c.hub.name, m.Spoke)
		}
		back[unified(m.Spoke)] = m.Hub
	}
	c.hub.loses, c.spoke.loses = c.hub.loses || dropHub, dropSpoke
	mapped := func(of map[any]any, drop bool) func(v any) (any, error) {
		return func(v any) (any, error) {
			if out, ok := of[unified(v)]; ok {
				return out, nil
			}
			if drop {
				return nothing, nil
			}
			return nil, fmt.Errorf("the conversion rules map the values %v only", slices.SortedFunc(maps.Keys(of), func(a, b any) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			}))
		}
	}
	between(&c.hub, hub, spoke, mapped(forth, dropHub), mapped(back, dropSpoke))
}

// unified returns a scalar in a form in which equal numbers are equal. Other values become nil.
func unified(v any) any {
	switch v := v.(type) {
	case string, bool, int64:
		return v
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
		return v
	}
	return nil
}

// fits reports whether a value is of a kind.
func fits(v any, k kind) bool {
	switch v := v.(type) {
	case string:
		return k == text || k == other
	case bool:
		return k == boolean
	case int64:
		return k == integer || k == number || k == other
	case float64:
		return k == number || k == integer && v == math.Trunc(v)
	case []any:
		return k == list
	case object.Tree:
		return k == fields || k == table
	}
	return false
}

type coerceParams struct {
	Path                string `json:"path"`
	OnFractionalInteger string `json:"onFractionalInteger"`
}

// coerceType converts a scalar to the type of the other version.
func coerceType(c *compiler, p *coerceParams) {
	hub, x := c.claim(&c.hub, "path", p.Path)
	spoke, y := c.claim(&c.spoke, "path", p.Path)
	if hub == nil || spoke == nil {
		return
	}
	for _, k := range []kind{kindOf(x), kindOf(y)} {
		if !k.scalar() {
			c.invalid("path", p.Path, "must be a string, an integer, a number or a boolean, not of the type %s", k)
			return
		}
	}
	round := orElse(p.OnFractionalInteger, "Error")
	if !slices.Contains([]string{"Error", "Round", "Truncate"}, round) {
		c.fail(field.NotSupported(c.rule.at.Child("onFractionalInteger"), round, []string{"Error", "Round", "Truncate"}))
		return
	}
	for _, s := range []struct {
		side     *side
		from, to kind
	}{{&c.hub, kindOf(x), kindOf(y)}, {&c.spoke, kindOf(y), kindOf(x)}} {
		s.side.loses = round != "Error" && s.to == integer && s.from != integer
		if s.from == text && s.to != text {
			c.warn("only the usual form of the type %s keeps its characters: \"007\" becomes 7", s.to)
		}
	}
	as := func(k kind) func(any) (any, error) { return func(v any) (any, error) { return coerce(v, k, round) } }
	between(&c.hub, hub, spoke, as(kindOf(y)), as(kindOf(x)))
}

// coerce converts a scalar to a kind.
func coerce(v any, to kind, round string) (any, error) {
	switch to {
	case text:
		switch v := v.(type) {
		case string:
			return v, nil
		case bool:
			return strconv.FormatBool(v), nil
		case int64:
			return strconv.FormatInt(v, 10), nil
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64), nil
		}
	case boolean:
		switch v := v.(type) {
		case bool:
			return v, nil
		case string:
			if b, err := strconv.ParseBool(strings.TrimSpace(v)); err == nil {
				return b, nil
			}
		}
	case integer, number:
		if n, ok := numeric(v); ok {
			return whole(n, to, round)
		}
	}
	return nil, fmt.Errorf("is no value of the type %s, which the field has in the other version", to)
}

// numeric returns the number in a scalar.
func numeric(v any) (any, bool) {
	switch v := v.(type) {
	case int64, float64:
		return v, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case string:
		v = strings.TrimSpace(v)
		if i, err := strconv.ParseInt(v, 10, 64); err == nil {
			return i, true
		}
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return nil, false
}

// whole returns a number, as an integer if it is whole or must be.
func whole(n any, to kind, round string) (any, error) {
	f, ok := n.(float64)
	if !ok {
		return n, nil
	}
	if f != math.Trunc(f) && to == integer {
		switch round {
		case "Round":
			f = math.Round(f)
		case "Truncate":
			f = math.Trunc(f)
		default:
			return nil, fmt.Errorf("is not a whole number, and the other version has an integer")
		}
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	if to == integer {
		return nil, fmt.Errorf("is too large for an integer of the other version")
	}
	return f, nil
}

type scaleParams struct {
	pathParams
	Factor float64 `json:"factor"`
}

// scale multiplies a number: the one of the hub is factor times that of the spoke.
func scale(c *compiler, p *scaleParams) {
	from, to, x, y, ok := c.ends(&p.pathParams, &c.hub)
	if !ok {
		return
	}
	if p.Factor == 0 {
		c.invalid("factor", p.Factor, "must not be 0")
		return
	}
	for _, k := range []kind{kindOf(x), kindOf(y)} {
		if k != integer && k != number {
			c.invalid("hubPath", p.HubPath, "and spokePath must be numbers, not of the type %s", k)
			return
		}
	}
	c.hub.loses, c.spoke.loses = kindOf(y) == integer, kindOf(x) == integer
	by := func(to kind, change func(float64) float64) func(any) (any, error) {
		return func(v any) (any, error) {
			switch n := v.(type) {
			case int64:
				return whole(change(float64(n)), to, "Round")
			case float64:
				return whole(change(n), to, "Round")
			}
			return nil, fmt.Errorf("must be a number")
		}
	}
	between(&c.hub, from, to, by(kindOf(y), func(f float64) float64 { return f / p.Factor }), by(kindOf(x), func(f float64) float64 { return f * p.Factor }))
}

// A unit is a text for an integer.
type unit struct {
	number func(said string) (int64, error)
	said   func(int64) string
}

var quantity = unit{
	func(said string) (int64, error) {
		q, err := resource.ParseQuantity(said)
		if err != nil {
			return 0, err
		}
		return q.MilliValue(), nil
	},
	func(n int64) string { return resource.NewMilliQuantity(n, resource.DecimalSI).String() },
}

var duration = unit{
	func(said string) (int64, error) {
		d, err := time.ParseDuration(said)
		if err == nil && d%time.Second != 0 {
			err = fmt.Errorf("is not a whole number of seconds")
		}
		return int64(d / time.Second), err
	},
	func(n int64) string { return (time.Duration(n) * time.Second).String() },
}

// measure is a text of a version that is an integer in the other one.
func measure(c *compiler, p *pathParams, u unit) {
	from, to, x, y, ok := c.ends(p, &c.hub)
	if !ok {
		return
	}
	said := &c.hub
	switch {
	case kindOf(x) == text && kindOf(y) == integer:
	case kindOf(x) == integer && kindOf(y) == text:
		said, from, to = &c.spoke, to, from
	default:
		c.invalid("hubPath", p.HubPath, "and spokePath must be a string and an integer, not of the types %s and %s", kindOf(x), kindOf(y))
		return
	}
	said.loses = true // of several texts for a number
	between(said, from, to,
		func(v any) (any, error) {
			s, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("must be a string")
			}
			return u.number(s)
		},
		func(v any) (any, error) {
			n, err := coerce(v, integer, "Error")
			if err != nil {
				return nil, err
			}
			return u.said(n.(int64)), nil
		})
}
