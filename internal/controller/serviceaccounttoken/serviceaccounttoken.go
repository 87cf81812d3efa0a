// Package serviceaccounttoken fills Secrets of the type kubernetes.io/service-account-token with a
// token of their account, and deletes them with the account.
package serviceaccounttoken

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller.
const Name = "serviceaccount-token-controller"

// The tasks.
const (
	fill   = "fill"    // fill or delete the Secret at the key
	sweep  = "sweep"   // delete the Secrets of the deleted account at the key
	unlist = "unlist " // and the name of a deleted Secret: remove it from the account at the key
)

// A Controller adds tokens to Secrets.
type Controller struct {
	objects           *controller.Objects
	queue             *controller.Queue
	issuer            *serviceaccount.Issuer
	ca                []byte
	secrets, accounts string // key prefixes
}

// New returns the constructor of the controller for an Issuer and a CA bundle. Each Secret gets the
// bundle, if it is not empty.
func New(issuer *serviceaccount.Issuer, ca []byte) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o, queue: q, issuer: issuer, ca: ca, secrets: o.Prefix("", "secrets"), accounts: o.Prefix("", "serviceaccounts")}
	}
}

// Keys returns the key prefixes of Secrets and ServiceAccounts.
func (c *Controller) Keys() []string { return []string{c.secrets, c.accounts} }

// See queues Secrets that may lack a token, and the tasks after a deletion.
func (c *Controller) See(e *controller.Event) {
	switch {
	case strings.HasPrefix(e.Key, c.accounts):
		if was, err := e.Was(); e.Value == nil && err == nil {
			c.queue.Add(controller.Task{Do: sweep, Key: e.Key, UID: was.UID})
		}
	case e.Value != nil:
		if mayHaveToken(e.Value) {
			c.queue.Add(controller.Task{Do: fill, Key: e.Key})
		}
	case mayHaveToken(e.Prev):
		if s, err := read(e.Prev); err == nil && s.Type == corev1.SecretTypeServiceAccountToken && s.account() != "" {
			c.queue.Add(controller.Task{Do: unlist + s.Metadata.Name, Key: c.keyOf(e.Key, s.account()), UID: s.accountUID()})
		}
	}
}

// mayHaveToken reports whether a Secret may be of this type. It avoids parsing others.
func mayHaveToken(secret []byte) bool {
	return bytes.Contains(secret, []byte(corev1.SecretTypeServiceAccountToken))
}

// keyOf returns the key of an account in the namespace of a Secret.
func (c *Controller) keyOf(secret, account string) string {
	return c.accounts + controller.NamespaceOf(secret) + "/" + account
}

// A secret has the relevant fields of a Secret.
type secret struct {
	Metadata struct {
		Name, Namespace string
		Annotations     map[string]string
	}
	Type corev1.SecretType
	Data map[string][]byte
}

func read(value []byte) (s secret, err error) {
	err = json.Unmarshal(value, &s)
	return s, err
}

func (s *secret) account() string    { return s.Metadata.Annotations[corev1.ServiceAccountNameKey] }
func (s *secret) accountUID() string { return s.Metadata.Annotations[corev1.ServiceAccountUIDKey] }

// Do does a task.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if name, ok := strings.CutPrefix(t.Do, unlist); ok {
		return c.unlist(ctx, t, name)
	}
	if t.Do == sweep {
		return c.sweep(ctx, t)
	}
	return c.fill(ctx, t.Key)
}

// fill completes the Secret at a key, or deletes it if its account is gone.
func (c *Controller) fill(ctx context.Context, key string) error {
	found, err := c.objects.Read(ctx, key)
	if err != nil || found == nil {
		return err
	}
	s, err := read(found.JSON)
	if err != nil || s.Type != corev1.SecretTypeServiceAccountToken || s.account() == "" {
		return nil // no account
	}
	account, err := c.objects.Read(ctx, c.keyOf(key, s.account()))
	switch {
	case err != nil:
		return err
	case account == nil || s.accountUID() != "" && s.accountUID() != account.UID:
		return c.delete(ctx, key, found.UID)
	case !c.lacks(&s):
		return nil
	}
	token, err := c.issuer.IssueLegacy(ctx, s.Metadata.Namespace, serviceaccount.Reference{Name: account.Name, UID: account.UID}, s.Metadata.Name)
	if err != nil {
		return err
	}
	err = c.objects.Change(ctx, c.objects.Lookup("", "secrets"), key, found.UID, "", func(t object.Tree) bool {
		now := kind.ValueOf[corev1.Secret](t)
		if !c.lacks(&secret{Data: now.Data}) {
			return false
		}
		c.complete(t, now, token)
		annotations := kind.Child(object.Metadata(t), "annotations")
		annotations[corev1.ServiceAccountNameKey], annotations[corev1.ServiceAccountUIDKey] = account.Name, account.UID
		return true
	})
	if status.Is(err, metav1.StatusReasonInvalid) {
		return nil // for example immutable; a retry would not help
	}
	return err
}

// lacks reports whether a Secret is incomplete.
func (c *Controller) lacks(s *secret) bool {
	return len(c.ca) > 0 && !bytes.Equal(s.Data[corev1.ServiceAccountRootCAKey], c.ca) ||
		len(s.Data[corev1.ServiceAccountNamespaceKey]) == 0 || len(s.Data[corev1.ServiceAccountTokenKey]) == 0
}

// complete sets the missing data of a Secret; s is its decoded form. An existing token stays.
func (c *Controller) complete(t object.Tree, s *corev1.Secret, token string) {
	data := kind.Child(t, "data")
	put := func(key, value string) { data[key] = base64.StdEncoding.EncodeToString([]byte(value)) }
	if len(c.ca) > 0 {
		put(corev1.ServiceAccountRootCAKey, string(c.ca))
	}
	if len(s.Data[corev1.ServiceAccountNamespaceKey]) == 0 {
		put(corev1.ServiceAccountNamespaceKey, s.Namespace)
	}
	if len(s.Data[corev1.ServiceAccountTokenKey]) == 0 {
		put(corev1.ServiceAccountTokenKey, token)
	}
}

// delete deletes a Secret, unless it has another UID.
func (c *Controller) delete(ctx context.Context, key, uid string) error {
	id := types.UID(uid)
	err := c.objects.Delete(ctx, c.objects.Lookup("", "secrets"), key, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id}})
	if status.Is(err, metav1.StatusReasonConflict) {
		return nil
	}
	return err
}

// sweep deletes the Secrets of a deleted account.
func (c *Controller) sweep(ctx context.Context, t controller.Task) error {
	now, err := c.objects.Read(ctx, t.Key)
	if err != nil || now != nil && now.UID == t.UID {
		return err
	}
	name := t.Key[strings.LastIndexByte(t.Key, '/')+1:]
	var errs []error
	err = c.objects.Pages(ctx, c.secrets+controller.NamespaceOf(t.Key)+"/", func(page kv.Page) {
		for _, r := range page.Records {
			if !mayHaveToken(r.Value) {
				continue
			}
			s, err := read(r.Value)
			if err != nil || s.Type != corev1.SecretTypeServiceAccountToken || s.account() != name {
				continue
			}
			if uid := s.accountUID(); uid != t.UID && (uid != "" || now != nil) {
				continue // it belongs to the present account of that name
			}
			if h, err := controller.ReadHeader(r.Key, r.Value, r.Revision); err == nil {
				errs = append(errs, c.delete(ctx, r.Key, h.UID))
			}
		}
	})
	return errors.Join(append(errs, err)...)
}

// unlist removes a deleted Secret from its account.
func (c *Controller) unlist(ctx context.Context, t controller.Task, name string) error {
	account, err := c.objects.Read(ctx, t.Key)
	if err != nil || account == nil || t.UID != "" && t.UID != account.UID || !bytes.Contains(account.JSON, []byte(name)) {
		return err
	}
	if again, err := c.objects.Read(ctx, c.secrets+controller.NamespaceOf(t.Key)+"/"+name); err != nil || again != nil {
		return err
	}
	return c.objects.Change(ctx, c.objects.Lookup("", "serviceaccounts"), t.Key, account.UID, "", func(t object.Tree) bool {
		list := kind.List(t, "secrets")
		left := slices.DeleteFunc(slices.Clone(list), func(s any) bool {
			ref, _ := s.(object.Tree)
			return kind.Text(ref, "name") == name
		})
		if t["secrets"] = left; len(left) == 0 {
			delete(t, "secrets")
		}
		return len(left) < len(list)
	})
}
