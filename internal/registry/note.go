package registry

import (
	"cmp"
	"context"
	"strings"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/registry/apply"
)

// A Note describes a write. A store with a history keeps it with each change of the write. An empty field
// is unknown.
type Note struct {
	User, Verb  string
	Manager     string // of the fields
	Subresource string
	Request     string // the audit id
}

const noteSeparator = "\x00"

// Bytes returns the encoded note.
func (n Note) Bytes() []byte {
	fields := [...]string{n.User, n.Verb, n.Manager, n.Subresource, n.Request}
	for i, f := range fields {
		if strings.Contains(f, noteSeparator) { // only a client that sends such a name
			fields[i] = strings.ReplaceAll(f, noteSeparator, "")
		}
	}
	return []byte(strings.Join(fields[:], noteSeparator))
}

// ParseNote decodes a note. Missing fields are empty.
func ParseNote(data []byte) Note {
	var fields [5]string
	copy(fields[:], strings.SplitN(string(data), noteSeparator, len(fields)))
	return Note{User: fields[0], Verb: fields[1], Manager: fields[2], Subresource: fields[3], Request: fields[4]}
}

// Note returns the note for a write, or nil if the store keeps no notes. The user, the verb and the audit
// id are those of the request of the context. Without a request, the server writes on its own behalf, with
// the given verb. An empty manager is the default field manager of the request.
func (r *Registry) Note(ctx context.Context, verb, manager, subresource string) []byte {
	if r.historian == nil && r.differ == nil {
		return nil
	}
	n := Note{User: request.Server.Name, Verb: verb, Manager: manager, Subresource: subresource}
	if q := request.From(ctx); q != nil {
		n.Verb, n.Request = cmp.Or(q.Info.Verb, verb), q.AuditID
		n.User = ""
		if q.User != nil {
			n.User = q.User.Name
		}
		if manager == "" {
			n.Manager = apply.DefaultManager(q.Sent.Get("User-Agent"))
		}
	}
	return n.Bytes()
}

// note returns the note of a write of an object.
func (w *write) note(ctx context.Context) []byte {
	verb := "update"
	switch {
	case w.gone:
		verb = "delete"
	case w.current == nil:
		verb = "create"
	}
	return w.Note(ctx, verb, cmp.Or(w.options.Manager, w.options.FieldManager), w.target.Subresource)
}
