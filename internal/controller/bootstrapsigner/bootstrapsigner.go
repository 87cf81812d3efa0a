// Package bootstrapsigner signs the ConfigMap cluster-info in kube-public with bootstrap tokens. A
// client that has only a token can then verify the ConfigMap.
//
// It reads the tokens for signing when it signs, and does not store them. It does not write the
// content of the ConfigMap.
package bootstrapsigner

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authn/bootstraptoken"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller.
const Name = "bootstrap-signer-controller"

// The ConfigMap and its keys.
const (
	configMap       = "cluster-info"
	signed          = "kubeconfig"      // the signed value
	signaturePrefix = "jws-kubeconfig-" // the id of the token follows
)

// A Controller signs the ConfigMap. It has one task.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	key     string // of the ConfigMap
	secrets string // key prefix of the Secrets that may be bootstrap tokens
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o, queue: q, key: o.Lookup("", "configmaps").Key(metav1.NamespacePublic, configMap),
		secrets: o.Lookup("", "secrets").NamespacePrefix(bootstraptoken.Namespace),
	}
}

// Keys returns the key of the ConfigMap and the key prefix of Secrets.
func (c *Controller) Keys() []string { return []string{c.key, c.secrets} }

// See queues the task after a change of the ConfigMap or a token.
func (c *Controller) See(e *controller.Event) {
	isToken := func(value []byte) bool { return bytes.Contains(value, []byte(bootstraptoken.Type)) }
	if e.Key == c.key && e.Value != nil || strings.HasPrefix(e.Key, c.secrets) && (isToken(e.Value) || isToken(e.Prev)) {
		c.queue.Add(controller.Task{})
	}
}

// Do adds a signature for each token, and removes all others.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	found, err := c.objects.Read(ctx, c.key)
	if err != nil || found == nil {
		return err
	}
	tokens, first, err := c.tokens(ctx)
	if err != nil {
		return err
	}
	if !first.IsZero() {
		c.queue.After(t, first.Sub(c.objects.Now()))
	}
	return c.objects.Change(ctx, c.objects.Lookup("", "configmaps"), c.key, found.UID, "", func(t object.Tree) bool {
		before, _ := t["data"].(object.Tree)
		content, ok := before[signed].(string)
		if !ok {
			return false
		}
		data := maps.Clone(before)
		maps.DeleteFunc(data, func(key string, _ any) bool { return strings.HasPrefix(key, signaturePrefix) })
		for id, private := range tokens {
			data[signaturePrefix+id] = signature(content, id, private)
		}
		t["data"] = data
		return !object.Equal(before, data)
	})
}

// tokens returns the signing tokens by id, and the time at which the first of them expires.
func (c *Controller) tokens(ctx context.Context) (tokens map[string]string, first time.Time, err error) {
	tokens = map[string]string{}
	now := c.objects.Now()
	err = c.objects.Pages(ctx, c.secrets, func(p kv.Page) {
		for i := range p.Records {
			s, err := bootstraptoken.ReadSecret(p.Records[i].Value)
			if err != nil {
				continue // not for signing
			}
			id, private, ok := s.Signs(now)
			if !ok {
				continue
			}
			tokens[id] = private
			if at, ends := s.Ends(); ends && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	})
	return tokens, first, err
}

// signature returns a detached JSON Web Signature.
func signature(content, id, private string) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(private))
	mac.Write([]byte(header + "." + encode([]byte(content))))
	return header + ".." + encode(mac.Sum(nil))
}
