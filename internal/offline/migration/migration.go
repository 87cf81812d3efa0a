// Package migration is the client of a storage migration: it makes a server store the objects of
// kinds in their storage version, and shows the progress.
//
// It knows the API of StorageVersionMigration, and retries while the server is unavailable. The
// server does the work (internal/controller/migration), and continues without the client.
package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Server is the server with the objects.
type Server struct {
	Client *http.Client
	URL    string
	// Retry is the pause before a retry after a failed request; 0 is a second.
	Retry time.Duration
}

// Progress displays the progress of a migration.
type Progress interface {
	// Show displays a state.
	Show(s State)
	// End ends the display, with a final text unless it is empty.
	End(text string)
}

// A State is the progress of a migration.
type State struct {
	Kind string // plural.group
	// Left of Total objects remain; Total is 0 while it is unknown.
	Left, Total int
	// Trouble is the error that delays the migration, or "".
	Trouble string
}

// staleRetries limits new migrations of a definition that changed during its migration.
const staleRetries = 5

// ErrUnavailable reports that the server does not serve StorageVersionMigration.
var ErrUnavailable = errors.New("the server has no storageversionmigrations.storagemigration.k8s.io")

// Migrate migrates the objects of a kind and returns when all of them are stored in its storage
// version, and its storedVersions have only that version.
func (s *Server) Migrate(ctx context.Context, k Kind, p Progress) error {
	state := State{Kind: k.name}
	for attempt := 0; !k.migrated(); attempt++ {
		err := fmt.Errorf("the definition keeps changing: objects may still be stored in %s", strings.Join(k.stored, ", "))
		if attempt < staleRetries {
			err = s.once(ctx, &k, &state, p)
		}
		if err != nil {
			p.End("")
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	p.End(state.result(k.storage))
	return nil
}

// once follows the unfinished migration of a kind, or a new one, to its end, and reads the
// definition again.
func (s *Server) once(ctx context.Context, k *Kind, state *State, p Progress) error {
	var m *migration
	made := false
	err := s.patiently(ctx, state, p, func() (err error) {
		// The list shows whether a create without a response succeeded.
		if m, err = s.underWay(ctx, k); err != nil || m != nil {
			return err
		}
		m, err = s.ask(ctx, k)
		made = err == nil
		return err
	})
	if err != nil {
		return err
	}
	name := m.Metadata.Name
	if err := s.follow(ctx, name, state, p); err != nil {
		return err
	}
	if made {
		// The migration is complete; a failed delete does not matter.
		_ = s.do(ctx, http.MethodDelete, migrations+"/"+name, nil, nil)
	}
	return s.patiently(ctx, state, p, func() error {
		now, err := s.kind(ctx, k.name)
		if err == nil {
			*k = now
		}
		return err
	})
}

// follow returns when the migration has ended.
func (s *Server) follow(ctx context.Context, name string, state *State, p Progress) error {
	for {
		var m *migration
		err := s.patiently(ctx, state, p, func() (err error) {
			m, err = s.watch(ctx, name, func(m *migration) bool {
				m.read(state)
				p.Show(*state)
				return m.ended()
			})
			return err
		})
		switch {
		case err != nil:
			return err
		case m == nil: // the watch timed out
		case m.gone:
			return fmt.Errorf("the migration %s was deleted before its end", name)
		case m.is("Failed"):
			return fmt.Errorf("the migration %s failed: %s", name, m.condition("Failed").Message)
		default:
			return nil
		}
	}
}

// patiently retries a request until the server responds.
func (s *Server) patiently(ctx context.Context, state *State, p Progress, do func() error) error {
	retry := s.Retry
	if retry == 0 {
		retry = time.Second
	}
	for {
		err := do()
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		state.Trouble = "the server does not answer: " + reason(err)
		p.Show(*state)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retry):
		}
	}
}

// A Kind is a CustomResourceDefinition.
type Kind struct {
	name    string // plural.group
	names   []string
	group   string
	storage string
	stored  []string // storedVersions
}

// Name returns the name of the definition.
func (k *Kind) Name() string { return k.name }

func (k *Kind) migrated() bool {
	return len(k.stored) == 0 || slices.Equal(k.stored, []string{k.storage})
}

// Kinds returns the kinds of words. A word is a name as in kubectl: plural, singular, kind or short
// name, optionally with a dot and the group. Without words, it returns all kinds that need a
// migration.
func (s *Server) Kinds(ctx context.Context, words []string) ([]Kind, error) {
	all, err := s.kinds(ctx)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return slices.DeleteFunc(all, func(k Kind) bool { return k.migrated() }), nil
	}
	var out []Kind
	for _, word := range words {
		k, err := find(all, word)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o Kind) bool { return o.name == k.name }) {
			out = append(out, *k)
		}
	}
	return out, nil
}

// find returns the kind of a word.
func find(all []Kind, word string) (*Kind, error) {
	var found []*Kind
	for i := range all {
		if all[i].is(word) {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no CustomResourceDefinition has the kind %q; kubectl get crds lists the definitions", word)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, k := range found {
		names[i] = k.name
	}
	return nil, fmt.Errorf("%q is ambiguous: choose one of %s", word, strings.Join(names, ", "))
}

func (k *Kind) is(word string) bool {
	return slices.ContainsFunc(k.names, func(name string) bool {
		return strings.EqualFold(word, name) || strings.EqualFold(word, name+"."+k.group)
	})
}
