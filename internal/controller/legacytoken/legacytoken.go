// Package legacytoken deletes unused service account tokens in Secrets that were created
// automatically with their account, as older versions of Kubernetes did. It first marks a Secret as
// invalid.
//
// It remembers nothing. Once a day it reads the Secrets.
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

// Name is the name of the controller.
const Name = "legacy-serviceaccount-token-cleaner-controller"

// DefaultPeriod is the time without use after which a token is marked, and the time from the mark
// until its deletion.
const DefaultPeriod = 365 * 24 * time.Hour

// pause is the interval between two runs.
const pause = 24 * time.Hour

// A Cleaner deletes Secrets. It has one task.
type Cleaner struct {
	objects                 *controller.Objects
	queue                   *controller.Queue
	period                  time.Duration
	secrets, accounts, pods string // key prefixes
}

// New returns the constructor of the controller for a period.
func New(period time.Duration) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Cleaner{
			objects: o, queue: q, period: period,
			secrets: o.Prefix("", "secrets"), accounts: o.Prefix("", "serviceaccounts"), pods: o.Prefix("", "pods"),
		}
	}
}

// Keys returns the key prefix of Secrets.
func (c *Cleaner) Keys() []string { return []string{c.secrets} }

// See schedules the task: at once for loaded Secrets, and a day after a write.
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

// A secret has the relevant fields of a Secret.
type secret struct {
	Metadata metav1.ObjectMeta
	Type     corev1.SecretType
}

// Do processes all Secrets with tokens.
func (c *Cleaner) Do(ctx context.Context, t controller.Task) error {
	now := c.objects.Now().UTC()
	since, err := c.trackedSince(ctx)
	if err != nil {
		return err
	}
	old := now.Add(-c.period) // later use keeps a token
	if since.IsZero() || old.Before(since) {
		c.queue.After(t, pause) // the start of tracking is unknown
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

// trackedSince returns the time since which all uses are recorded, or the zero time.
func (c *Cleaner) trackedSince(ctx context.Context) (time.Time, error) {
	found, err := c.objects.Read(ctx, c.objects.Prefix("", "configmaps")+metav1.NamespaceSystem+"/"+TrackingConfigMap)
	if err != nil || found == nil {
		return time.Time{}, err
	}
	day, ok := trackedSince(found.JSON)
	if !ok {
		return time.Time{}, nil
	}
	return day.AddDate(0, 0, 1), nil // the first day was recorded in part
}

// mayGo reports whether a Secret is older than a time and was not used since. A Secret without a
// last use counts as unused.
func mayGo(s *secret, old time.Time) bool {
	if s.Metadata.DeletionTimestamp != nil || !s.Metadata.CreationTimestamp.Time.Before(old) {
		return false
	}
	used, ok := s.Metadata.Labels[serviceaccount.LastUsedLabel]
	if !ok {
		return true
	}
	if _, ok := serviceaccount.Day(used); !ok {
		return false // an invalid date: keep it
	}
	return used < old.Format(serviceaccount.DateFormat)
}

// clean marks a Secret, or deletes one that was marked a period ago.
func (c *Cleaner) clean(ctx context.Context, r kv.Record, s *secret, now, old time.Time) error {
	if listed, err := c.isListed(ctx, s); err != nil || !listed {
		return err // a manually created Secret
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
		return nil // used or unmarked since then
	}
	return err
}

// isListed reports whether the account of a Secret lists it. Automatically created Secrets are
// listed.
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

// isUsed reports whether a pod uses a Secret. Any occurrence of the name in a pod counts.
func (c *Cleaner) isUsed(ctx context.Context, s *secret) (used bool, err error) {
	err = c.objects.Pages(ctx, c.pods+s.Metadata.Namespace+"/", func(page kv.Page) {
		for _, r := range page.Records {
			used = used || bytes.Contains(r.Value, strconv.AppendQuote(nil, s.Metadata.Name))
		}
	})
	return used, err
}
