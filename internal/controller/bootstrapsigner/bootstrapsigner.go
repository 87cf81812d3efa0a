// Package bootstrapsigner signs the ConfigMap cluster-info in kube-public with bootstrap tokens, so
// that whoever has one of them, and nothing else, can believe what it says.
//
// It knows which tokens are for signing, and forgets them when it has signed. It does not know what
// the ConfigMap says, or who writes it.
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

// Name is what the controller is called.
const Name = "bootstrap-signer-controller"

// Parts of the ConfigMap.
const (
	configMap       = "cluster-info"
	signed          = "kubeconfig"      // the key of what is signed
	signaturePrefix = "jws-kubeconfig-" // of the key of a signature; the id of the token follows
)

// A Controller signs the ConfigMap. It has one task.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	key     string // of the ConfigMap
	secrets string // begins the keys of Secrets among which bootstrap tokens are
}

// New makes the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o, queue: q, key: o.Lookup("", "configmaps").Key(metav1.NamespacePublic, configMap),
		secrets: o.Lookup("", "secrets").NamespacePrefix(bootstraptoken.Namespace),
	}
}

// Keys returns that of the ConfigMap, and those of Secrets.
func (c *Controller) Keys() []string { return []string{c.key, c.secrets} }

// See has the ConfigMap signed when it was changed, or a token was.
func (c *Controller) See(e *controller.Event) {
	isToken := func(value []byte) bool { return bytes.Contains(value, []byte(bootstraptoken.Type)) }
	if e.Key == c.key && e.Value != nil || strings.HasPrefix(e.Key, c.secrets) && (isToken(e.Value) || isToken(e.Prev)) {
		c.queue.Add(controller.Task{})
	}
}

// Do gives the ConfigMap a signature by each token, and takes all others away.
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

// tokens returns those to sign with, by their ids, and when the first of them expires.
func (c *Controller) tokens(ctx context.Context) (tokens map[string]string, first time.Time, err error) {
	tokens = map[string]string{}
	now := c.objects.Now()
	err = c.objects.Pages(ctx, c.secrets, func(p kv.Page) {
		for i := range p.Records {
			s, err := bootstraptoken.ReadSecret(p.Records[i].Value)
			if err != nil {
				continue // It signs nothing.
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

// signature is a JSON web signature without what it signs.
func signature(content, id, private string) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode([]byte(`{"alg":"HS256","kid":"` + id + `"}`))
	mac := hmac.New(sha256.New, []byte(private))
	mac.Write([]byte(header + "." + encode([]byte(content))))
	return header + ".." + encode(mac.Sum(nil))
}
