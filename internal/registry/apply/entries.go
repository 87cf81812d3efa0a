package apply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry/fieldset"
)

// An entry is one entry of metadata.managedFields: the fields of one owner.
type entry struct {
	owner
	time   int64 // in seconds; 0 if missing
	at     string
	fields fieldset.Set
}

// An owner identifies an entry. An applier has one entry for all versions.
type owner struct{ manager, operation, apiVersion, subresource string }

// Server is the manager of fields that the API server sets by itself.
const Server = "kube-apiserver"

const (
	applies = string(metav1.ManagedFieldsOperationApply)
	updates = string(metav1.ManagedFieldsOperationUpdate)
)

func (o owner) is(other owner) bool {
	if o.operation == applies {
		o.apiVersion = other.apiVersion
	}
	return o == other
}

// entries are the entries of metadata.managedFields, one for each owner.
type entries []entry

func (list entries) of(o owner) int {
	return slices.IndexFunc(list, func(e entry) bool { return e.is(o) })
}

// managed reads metadata.managedFields. The entries share their fields with t. reset reports whether
// the client resets all managers. Unreadable entries count as none.
func managed(t object.Tree) (list entries, reset bool) {
	metadata, _ := t["metadata"].(object.Tree)
	items, ok := metadata["managedFields"].([]any)
	if !ok {
		return nil, false
	}
	for _, item := range items {
		e, fieldsType, ok := readEntry(item)
		if !ok {
			return unusual(t)
		}
		if len(items) == 1 && fieldsType == "" && e.owner == (owner{}) && e.at == "" && e.fields == nil {
			return nil, true
		}
		if list, ok = list.add(e, fieldsType); !ok {
			return nil, false
		}
	}
	return list, len(items) == 0
}

// add appends a decoded entry if it is valid.
func (list entries) add(e entry, fieldsType string) (entries, bool) {
	if e.operation != applies && e.operation != updates || e.apiVersion == "" || fieldsType != "FieldsV1" {
		return nil, false
	}
	if e.fields == nil {
		e.fields = fieldset.Set{}
	}
	if !fieldset.Normal(e.fields) {
		set, err := parseSet(e.fields)
		if err != nil {
			return nil, false
		}
		e.fields = encodeSet(set)
	}
	if i := list.of(e.owner); i >= 0 {
		list[i] = e
		return list, true
	}
	return append(list, e), true
}

// readEntry reads an entry in its usual form. It reports false for other forms.
func readEntry(item any) (e entry, fieldsType string, ok bool) {
	t, ok := item.(object.Tree)
	if !ok {
		return e, "", false
	}
	for key, v := range t {
		if key == "fieldsV1" {
			if e.fields, ok = v.(object.Tree); !ok || e.fields == nil {
				return e, "", false
			}
			continue
		}
		s, ok := v.(string)
		if !ok {
			return e, "", false
		}
		switch key {
		case "manager":
			e.manager = s
		case "operation":
			e.operation = s
		case "apiVersion":
			e.apiVersion = s
		case "subresource":
			e.subresource = s
		case "fieldsType":
			fieldsType = s
		case "time":
			at, err := time.Parse(time.RFC3339, s)
			if err != nil || at.IsZero() {
				return e, "", false
			}
			e.setTime(at)
		default:
			return e, "", false
		}
	}
	return e, fieldsType, true
}

func (e *entry) setTime(at time.Time) { e.time, e.at = at.Unix(), object.Timestamp(at) }

// unusual reads managedFields by way of their Go type.
func unusual(t object.Tree) (list entries, reset bool) {
	items := object.AccessorOf(t).GetManagedFields()
	if len(items) == 1 && reflect.DeepEqual(items[0], metav1.ManagedFieldsEntry{}) {
		return nil, true
	}
	for i := range items {
		m := &items[i]
		e := entry{owner: owner{m.Manager, string(m.Operation), m.APIVersion, m.Subresource}}
		if m.Time != nil && !m.Time.IsZero() {
			e.setTime(m.Time.Time)
		}
		if m.FieldsV1 != nil && kjson.UnmarshalCaseSensitivePreserveInts(m.FieldsV1.GetRawBytes(), &e.fields) != nil {
			return nil, false
		}
		ok := false
		if list, ok = list.add(e, m.FieldsType); !ok {
			return nil, false
		}
	}
	return list, items != nil && len(items) == 0
}

// write writes the entries to metadata.managedFields of t.
func (list entries) write(t object.Tree) {
	if len(list) == 0 {
		if metadata, ok := t["metadata"].(object.Tree); ok {
			delete(metadata, "managedFields")
		}
		return
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(
			strings.Compare(a.operation, b.operation), cmp.Compare(a.time, b.time), strings.Compare(a.manager, b.manager),
			strings.Compare(a.apiVersion, b.apiVersion), strings.Compare(a.subresource, b.subresource))
	})
	items := make([]any, len(list))
	for i, e := range list {
		item := make(object.Tree, 7)
		for _, f := range [...]struct{ key, value string }{
			{"manager", e.manager}, {"operation", e.operation}, {"apiVersion", e.apiVersion},
			{"subresource", e.subresource}, {"time", e.at},
		} {
			if f.value != "" {
				item[f.key] = f.value
			}
		}
		item["fieldsType"], item["fieldsV1"] = "FieldsV1", e.fields
		items[i] = item
	}
	object.Metadata(t)["managedFields"] = items
}

// clone returns a deep copy.
func (list entries) clone() entries {
	list = slices.Clone(list)
	for i := range list {
		list[i].fields = object.CloneTree(list[i].fields)
	}
	return list
}

// filled returns the entries with at least one field.
func (list entries) filled() entries {
	return slices.DeleteFunc(list, func(e entry) bool { return len(e.fields) == 0 })
}

// maxUpdaters limits the entries of updaters, the managers that do not apply.
const maxUpdaters = 10

// capped merges the oldest entries of updaters, version by version, until they are within the limit.
func (list entries) capped() entries {
	var updaters entries
	for _, e := range list {
		if e.operation == updates {
			updaters = append(updaters, e)
		}
	}
	length := len(updaters)
	if length <= maxUpdaters {
		return list
	}
	slices.SortStableFunc(updaters, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.time, b.time), strings.Compare(a.id(), b.id()))
	})
	first := map[string]owner{} // by version
	for _, e := range updaters {
		if length <= maxUpdaters {
			break
		}
		oldest, ok := first[e.apiVersion]
		if !ok {
			first[e.apiVersion] = e.owner
			continue
		}
		bucket := owner{manager: "ancient-changes", operation: updates, apiVersion: e.apiVersion}
		if list.of(bucket) < 0 {
			i := list.of(oldest)
			list[i].owner, list[i].time, list[i].at = bucket, 0, ""
		}
		if e.owner != bucket { // Kubernetes loses the oldest changes here
			b := &list[list.of(bucket)]
			fieldset.Unite(b.fields, e.fields)
			b.time, b.at = e.time, e.at
		}
		i := list.of(e.owner)
		list = slices.Delete(list, i, i+1)
		length--
	}
	return list
}

// id identifies an owner. Entries of the same second are sorted by it.
func (o owner) id() string {
	data, err := json.Marshal(&metav1.ManagedFieldsEntry{
		Manager: o.manager, Operation: metav1.ManagedFieldsOperationType(o.operation), APIVersion: o.apiVersion, Subresource: o.subresource,
	})
	if err != nil {
		panic(err) // it has only strings
	}
	return string(data)
}

// ValidateManaged returns the error that Kubernetes reports for invalid managedFields of t.
func ValidateManaged(t object.Tree) error {
	return managedfields.ValidateManagedFields(object.AccessorOf(t).GetManagedFields())
}

func parseSet(fields object.Tree) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(object.AppendJSON(nil, fields)))
	return set, err
}

func encodeSet(set *fieldpath.Set) object.Tree {
	t := object.Tree{}
	if data, err := set.ToJSON(); err == nil {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &t) // a set is an object
	}
	return t
}
