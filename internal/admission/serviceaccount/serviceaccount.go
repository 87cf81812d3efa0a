// Package serviceaccount implements the admission plugin ServiceAccount. It sets the ServiceAccount
// of pods, mounts a token, and rejects secrets that the account does not allow.
//
// It does not create tokens: the kubelet requests them for a projected volume of the pod.
package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Name is the name of the plugin in Kubernetes.
const Name = "ServiceAccount"

// Default is the default account of pods.
const Default = "default"

// A Plugin sets the accounts of pods.
type Plugin struct {
	Accounts *stored.Lister[corev1.ServiceAccount]
}

// Mutate sets the account of a new pod, a volume with its token, and the image pull secrets of the
// account. A mirror pod stays unchanged: the kubelet compares it with its own.
func (p *Plugin) Mutate(ctx context.Context, a *registry.Admission) error {
	if a.Operation != registry.Create || !isPod(a) || a.Target.Subresource != "" {
		return nil
	}
	if isMirror(a.Object) {
		return p.Validate(ctx, a)
	}
	spec := kind.Child(a.Object, "spec")
	if kind.Text(spec, "serviceAccountName") == "" {
		spec["serviceAccountName"], spec["serviceAccount"] = Default, Default
		a.Extended = true
	}
	account, err := p.account(ctx, a)
	if err != nil {
		return err
	}
	if mounts(account, spec) && mountToken(spec) {
		a.Extended = true
	}
	if len(kind.List(spec, "imagePullSecrets")) == 0 && len(account.ImagePullSecrets) > 0 {
		spec["imagePullSecrets"] = references(account.ImagePullSecrets)
		a.Extended = true
	}
	return refused(a, checkSecrets(account, spec))
}

// Validate rejects a pod without an account, and secrets that the account does not allow.
func (p *Plugin) Validate(ctx context.Context, a *registry.Admission) error {
	if !isPod(a) {
		return nil
	}
	spec := kind.Tree(a.Object, "spec")
	switch {
	case a.Operation == registry.Update && a.Target.Subresource == "ephemeralcontainers":
		account, err := p.account(ctx, a)
		if err != nil {
			return err
		}
		return checkEphemeralSecrets(account, spec) // not a Forbidden error, as in Kubernetes
	case a.Operation != registry.Create || a.Target.Subresource != "":
		return nil
	case isMirror(a.Object):
		return checkMirror(a, spec)
	}
	account, err := p.account(ctx, a)
	if err != nil {
		return err
	}
	return refused(a, checkSecrets(account, spec))
}

func refused(a *registry.Admission, why error) error {
	if why == nil {
		return nil
	}
	return a.Forbidden(why)
}

func isPod(a *registry.Admission) bool {
	d := a.Target.Definition
	return d.Plural == "pods" && d.Group == ""
}

func isMirror(pod object.Tree) bool {
	_, mirror := kind.Tree(pod, "metadata", "annotations")[corev1.MirrorPodAnnotationKey]
	return mirror
}

// account returns the account of a pod.
func (p *Plugin) account(ctx context.Context, a *registry.Admission) (*corev1.ServiceAccount, error) {
	name := kind.Text(a.Object, "spec", "serviceAccountName")
	if name == "" {
		return nil, a.Forbidden(fmt.Errorf("no service account specified for pod %s/%s", a.Target.Namespace, object.Name(a.Object)))
	}
	account, err := p.find(ctx, a.Target.Namespace, name)
	if err == nil && account == nil {
		err = status.NotFound(corev1.Resource("serviceaccount"), name)
		if wrong := object.ValidatePathSegment(name, false); len(wrong) > 0 {
			err = fmt.Errorf("invalid resource name %q: %v", name, wrong)
		}
	}
	if err != nil {
		return nil, a.Forbidden(fmt.Errorf("error looking up service account %s/%s: %w", a.Target.Namespace, name, err))
	}
	return account, nil
}

const (
	// accountTimeout limits the wait for the default account of a new namespace.
	accountTimeout = 1500 * time.Millisecond
	lookAgain      = 50 * time.Millisecond
)

// find returns an account, or nil. A controller creates the default account shortly after the
// namespace, so find waits for that one.
func (p *Plugin) find(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, err := p.Accounts.Get(ctx, namespace, name)
	if account != nil || err != nil || name != Default {
		return account, err
	}
	soon, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for account == nil && err == nil {
		select {
		case <-again.C:
			account, err = p.Accounts.Get(ctx, namespace, name)
		case <-soon.Done():
			return nil, ctx.Err()
		}
	}
	return account, err
}

// mounts reports whether to mount the token into the containers of a pod. The pod decides,
// otherwise the account; the default is true.
func mounts(account *corev1.ServiceAccount, spec object.Tree) bool {
	if says, ok := spec["automountServiceAccountToken"].(bool); ok {
		return says
	}
	return account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken
}

func references(secrets []corev1.LocalObjectReference) []any {
	out := make([]any, len(secrets))
	for i, s := range secrets {
		out[i] = object.Tree{}
		if s.Name != "" {
			out[i] = object.Tree{"name": s.Name}
		}
	}
	return out
}

// enforce is the annotation of an account that restricts its pods to the secrets it lists.
const enforce = "kubernetes.io/enforce-mountable-secrets"

func enforces(account *corev1.ServiceAccount) bool {
	yes, _ := strconv.ParseBool(account.Annotations[enforce]) // an invalid value counts as false
	return yes
}

// checkMirror rejects a mirror pod with fields that need other API objects.
func checkMirror(a *registry.Admission, spec object.Tree) error {
	switch {
	case kind.Text(spec, "serviceAccountName") != "":
		return a.Forbidden(errors.New("a mirror pod may not reference service accounts"))
	case hasSecrets(spec):
		return a.Forbidden(errors.New("a mirror pod may not reference secrets"))
	case asksForToken(spec):
		return a.Forbidden(errors.New("a mirror pod may not use ServiceAccountToken volume projections"))
	}
	return nil
}
