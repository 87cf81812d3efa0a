package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/envtest"
)

const (
	// maxRecent is the number of changes in which fights are looked for.
	maxRecent = 200
	// leastReturns is the number of times that a field returns to the value before the last one, in a fight.
	leastReturns = 4
)

// A fight is a field that alternates between two values.
type fight struct {
	object, field string
	values        [2]string
	writers       [2]string
}

func (f fight) String() string {
	if f.field == "" {
		return fmt.Sprintf("%s is %s by %s and %s by %s, in turn", f.object, f.values[0], f.writers[0], f.values[1], f.writers[1])
	}
	return fmt.Sprintf("%s: %s alternates between %s by %s and %s by %s", f.object, f.field, cut(f.values[0]), f.writers[0], cut(f.values[1]), f.writers[1])
}

// noteChange notes a change for nameFights.
func (r *run) noteChange(c envtest.Change) {
	if len(r.recent) == 2*maxRecent {
		r.recent = append([]envtest.Change(nil), r.recent[maxRecent:]...)
	}
	r.recent = append(r.recent, c)
}

// nameFights adds the fights of the last changes to a problem, and to the story.
func (r *run) nameFights(p *Problem) {
	stable := namesOf(r.state.names, r.state.objects, nil)
	for i, f := range fights(r.recent[max(0, len(r.recent)-maxRecent):], r.actor) {
		p.Text += "\n" + f.String()
		if i == 0 { // others can be below the threshold in the next run
			p.signature = stable.text(f.object) + " " + f.field
		}
		r.tell("report", f.String())
	}
}

// A turn is one change of a field.
type turn struct{ value, writer string }

// fights returns the fields that alternate between two values in the changes.
func fights(changes []envtest.Change, actor func(user string) string) (all []fight) {
	turns := map[[2]string][]turn{} // by object and field
	for _, c := range changes {
		switch {
		case c.Before == nil:
			key := [2]string{identityOf(c.After).String()}
			turns[key] = append(turns[key], turn{"created", actor(c.User)})
		case c.After == nil:
			key := [2]string{identityOf(c.Before).String()}
			turns[key] = append(turns[key], turn{"deleted", actor(c.User)})
		default:
			var fields differences
			compareValues(difference{"", "", bare(c.Before), bare(c.After)}, &fields)
			for _, d := range fields {
				path := strings.TrimPrefix(d.field, ".")
				key, value := [2]string{identityOf(c.After).String(), path}, "nothing"
				if d.is != nil {
					value = compact(d.is)
				}
				turns[key] = append(turns[key], turn{value, writer(c, path, actor)})
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(turns), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		list, returns := turns[key], 0
		for i := 2; i < len(list); i++ {
			if list[i].value == list[i-2].value && list[i].value != list[i-1].value {
				returns++
			}
		}
		if n := len(list); returns >= leastReturns {
			f := fight{object: key[0], field: key[1]}
			for i, t := range list[n-2:] {
				f.values[i], f.writers[i] = t.value, t.writer
			}
			all = append(all, f)
		}
	}
	return all
}

// writer names the author of a change of a field: the actor, and the field manager that has the field afterwards.
func writer(c envtest.Change, path string, actor func(user string) string) string {
	for _, m := range c.After.GetManagedFields() {
		var fields map[string]any
		if m.FieldsV1 != nil && json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) == nil && owns(fields, path) && changedEntry(c, m) {
			return fmt.Sprintf("%s (manager %q)", actor(c.User), m.Manager)
		}
	}
	return actor(c.User)
}

// changedEntry reports whether a change wrote an entry of the managed fields: before it, there was none that is equal.
func changedEntry(c envtest.Change, m metav1.ManagedFieldsEntry) bool {
	return !slices.ContainsFunc(c.Before.GetManagedFields(), func(b metav1.ManagedFieldsEntry) bool {
		return b.Manager == m.Manager && b.Operation == m.Operation && b.Subresource == m.Subresource && b.FieldsV1.GetRawString() == m.FieldsV1.GetRawString() && b.Time.Equal(m.Time)
	})
}

// owns reports whether managed fields contain the field at a path of a difference.
func owns(fields map[string]any, path string) bool {
	for key, below := range fields {
		sub, _ := below.(map[string]any)
		name, isField := strings.CutPrefix(key, "f:")
		rest, found := strings.CutPrefix(path, name)
		if item, inList := strings.CutPrefix(path, "["); !isField && inList {
			item, rest, _ = strings.Cut(item, "]")
			found = item == "" || strings.Contains(key, compact(item))
		}
		if !found || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if rest == "" || len(sub) == 0 || owns(sub, strings.TrimPrefix(rest, ".")) {
			return true
		}
	}
	return false
}
