// Package serviceaccount has the admission plugin ServiceAccount, which gives pods a
// ServiceAccount and its token, and lets them have the secrets only that it may have.
//
// It knows what a pod says of its account and of secrets. It does not know how tokens are made:
// the pod has a volume that asks for one.
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

// Name is what Kubernetes calls the plugin.
const Name = "ServiceAccount"

// Default is the account of pods that name none.
const Default = "default"

// A Plugin gives pods their accounts.
type Plugin struct {
	Accounts *stored.Lister[corev1.ServiceAccount]
}

// Mutate gives a new pod an account, the token of the account, and its secrets for images. It
// leaves the spec of a mirror pod alone: the kubelet compares it with its own.
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

// Validate refuses a pod without an account, and secrets that the account may not have.
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
		return checkEphemeralSecrets(account, spec) // which Kubernetes does not word as a refusal
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

// account returns the account that a pod names.
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
	// patience is how long a pod waits for the account that a controller is about to make.
	patience  = 1500 * time.Millisecond
	lookAgain = 50 * time.Millisecond
)

// find returns an account, or nil. The account that every namespace has is made by a controller
// a moment after the namespace, so that a pod which is early waits for it.
func (p *Plugin) find(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, err := p.Accounts.Get(ctx, namespace, name)
	if account != nil || err != nil || name != Default {
		return account, err
	}
	soon, cancel := context.WithTimeout(ctx, patience)
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

// mounts reports whether the token of an account is mounted into the containers of a pod: the
// pod says so, or else the account, or else it is.
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

// enforce says on an account whether its pods may have only the secrets that it names.
const enforce = "kubernetes.io/enforce-mountable-secrets"

func enforces(account *corev1.ServiceAccount) bool {
	yes, _ := strconv.ParseBool(account.Annotations[enforce]) // what is no truth value is not true
	return yes
}

// checkMirror refuses a mirror pod for what the API server would have to give to it.
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
