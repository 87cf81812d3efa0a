// Package legacytoken deletes the tokens in Secrets that nobody uses: those that were made
// with their account, as was once usual. It marks them first, so that they do not count.
//
// It remembers nothing. Once a day it looks at those that there are.
package legacytoken

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is what the controller is called.
const Name = "legacy-serviceaccount-token-cleaner-controller"

// DefaultPeriod is after how long without a use a token is marked, and after how long again
// it is deleted.
const DefaultPeriod = 365 * 24 * time.Hour

// pause is how often Secrets are looked at.
const pause = 24 * time.Hour

// A Cleaner deletes Secrets. It has one task: to look at them.
type Cleaner struct {
	objects                 *controller.Objects
	queue                   *controller.Queue
	period                  time.Duration
	secrets, accounts, pods string // prefixes of keys
}

// New returns what makes the controller for a period.
func New(period time.Duration) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Cleaner{
			objects: o, queue: q, period: period,
			secrets: o.Prefix("", "secrets"), accounts: o.Prefix("", "serviceaccounts"), pods: o.Prefix("", "pods"),
		}
	}
}

// Keys returns those of Secrets.
func (c *Cleaner) Keys() []string { return []string{c.secrets} }

// See has the Secrets looked at: at once if there are any, and a day after one was written.
func (c *Cleaner) See(e *controller.Event) {
	switch {
	case !mayHaveToken(e.Value):
	case e.Loading:
		c.queue.Add(controller.Task{})
	default:
		c.queue.After(controller.Task{}, pause)
	}
}

func mayHaveToken(value []byte) bool {
	return bytes.Contains(value, []byte(corev1.SecretTypeServiceAccountToken))
}

// A secret is what is looked at in one.
type secret struct {
	Metadata metav1.ObjectMeta
	Type     corev1.SecretType
}

// Do looks at all Secrets with tokens.
func (c *Cleaner) Do(ctx context.Context, t controller.Task) error {
	now := c.objects.Now().UTC()
	since, err := c.trackedSince(ctx)
	if err != nil {
		return err
	}
	old := now.Add(-c.period) // what was used since stays
	if since.IsZero() || old.Before(since) {
		c.queue.After(t, pause) // nobody can tell yet
		return nil
	}
	left := false
	var errs []error
	err = c.objects.Pages(ctx, c.secrets, func(page kv.Page) {
		for _, r := range page.Records {
			var s secret
			if !mayHaveToken(r.Value) || json.Unmarshal(r.Value, &s) != nil || s.Type != corev1.SecretTypeServiceAccountToken {
				continue
			}
			left = true
			if mayGo(&s, old) {
				errs = append(errs, c.clean(ctx, r, &s, now, old))
			}
		}
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if left {
		c.queue.After(t, pause)
	}
	return nil
}

// trackedSince returns from when on all uses are known, or no time if none are.
func (c *Cleaner) trackedSince(ctx context.Context) (time.Time, error) {
	found, err := c.objects.Read(ctx, c.objects.Prefix("", "configmaps")+metav1.NamespaceSystem+"/"+TrackingConfigMap)
	if err != nil || found == nil {
		return time.Time{}, err
	}
	day, ok := since(found.JSON)
	if !ok {
		return time.Time{}, nil
	}
	return day.AddDate(0, 0, 1), nil // of the day itself only a part was seen
}

// mayGo reports whether a Secret is older than a time and was not used since. One that does
// not say when, was not.
func mayGo(s *secret, old time.Time) bool {
	if s.Metadata.DeletionTimestamp != nil || !s.Metadata.CreationTimestamp.Time.Before(old) {
		return false
	}
	used, ok := s.Metadata.Labels[serviceaccount.LastUsedLabel]
	if !ok {
		return true
	}
	if _, ok := serviceaccount.Day(used); !ok {
		return false // nobody can tell
	}
	return used < old.Format(serviceaccount.DateFormat)
}

// clean marks a Secret, or deletes one that was marked a period ago.
func (c *Cleaner) clean(ctx context.Context, r kv.Record, s *secret, now, old time.Time) error {
	if listed, err := c.isListed(ctx, s); err != nil || !listed {
		return err // somebody made it
	}
	if used, err := c.isUsed(ctx, s); err != nil || used {
		return err
	}
	d := c.objects.Lookup("", "secrets")
	marked := s.Metadata.Labels[serviceaccount.InvalidSinceLabel]
	if _, ok := serviceaccount.Day(marked); !ok {
		return c.objects.Change(ctx, d, r.Key, string(s.Metadata.UID), "", func(t object.Tree) bool {
			return serviceaccount.Label(t, serviceaccount.InvalidSinceLabel, now.Format(serviceaccount.DateFormat))
		})
	}
	if marked >= old.Format(serviceaccount.DateFormat) {
		return nil
	}
	revision := strconv.FormatInt(r.Revision, 10)
	err := c.objects.Delete(ctx, d, r.Key, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}})
	if status.Is(err, metav1.StatusReasonConflict) {
		return nil // it was used or unmarked meanwhile
	}
	return err
}

// isListed reports whether the account of a Secret lists it, as it does one that was made
// with it.
func (c *Cleaner) isListed(ctx context.Context, s *secret) (bool, error) {
	name, uid := s.Metadata.Annotations[corev1.ServiceAccountNameKey], s.Metadata.Annotations[corev1.ServiceAccountUIDKey]
	if name == "" {
		return false, nil
	}
	found, err := c.objects.Read(ctx, c.accounts+s.Metadata.Namespace+"/"+name)
	if err != nil || found == nil || uid != "" && uid != found.UID {
		return false, err
	}
	var account struct{ Secrets []corev1.ObjectReference }
	if err := json.Unmarshal(found.JSON, &account); err != nil {
		return false, fmt.Errorf("the stored account %s cannot be read: %w", found.Key, err)
	}
	return slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == s.Metadata.Name }), nil
}

// isUsed reports whether a pod uses a Secret. One that names it anywhere is taken to.
func (c *Cleaner) isUsed(ctx context.Context, s *secret) (used bool, err error) {
	err = c.objects.Pages(ctx, c.pods+s.Metadata.Namespace+"/", func(page kv.Page) {
		for _, r := range page.Records {
			used = used || bytes.Contains(r.Value, strconv.AppendQuote(nil, s.Metadata.Name))
		}
	})
	return used, err
}
