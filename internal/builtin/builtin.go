package builtin

import (
	"context"
	"errors"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	authzrbac "github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin/admissionregistration"
	"github.com/anykind/anykind/internal/builtin/apiregistration"
	"github.com/anykind/anykind/internal/builtin/apiserverinternal"
	"github.com/anykind/anykind/internal/builtin/apps"
	"github.com/anykind/anykind/internal/builtin/authentication"
	"github.com/anykind/anykind/internal/builtin/authorization"
	"github.com/anykind/anykind/internal/builtin/autoscaling"
	"github.com/anykind/anykind/internal/builtin/batch"
	"github.com/anykind/anykind/internal/builtin/certificates"
	"github.com/anykind/anykind/internal/builtin/coordination"
	"github.com/anykind/anykind/internal/builtin/core"
	"github.com/anykind/anykind/internal/builtin/discovery"
	"github.com/anykind/anykind/internal/builtin/dra"
	"github.com/anykind/anykind/internal/builtin/events"
	"github.com/anykind/anykind/internal/builtin/flowcontrol"
	"github.com/anykind/anykind/internal/builtin/lifecycle"
	"github.com/anykind/anykind/internal/builtin/networking"
	"github.com/anykind/anykind/internal/builtin/node"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/builtin/policy"
	"github.com/anykind/anykind/internal/builtin/rbac"
	"github.com/anykind/anykind/internal/builtin/scheduling"
	"github.com/anykind/anykind/internal/builtin/storage"
	"github.com/anykind/anykind/internal/builtin/storagemigration"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/network/remotecommand"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// Dependencies are dependencies of kinds, and rules for pods. A missing dependency gets a default that
// knows no servers, users or roles.
type Dependencies struct {
	// AllowPrivileged allows privileged containers.
	AllowPrivileged bool

	Kubelets *kubelet.Client
	// Network reaches pods.
	Network http.RoundTripper
	// Authorizer is for kinds that check permissions themselves.
	Authorizer authz.Authorizer
	// Roles resolve the RBAC rules of users.
	Roles *authzrbac.Authorizer
	// Tokens signs service account tokens.
	Tokens *serviceaccount.Issuer
	// Store returns the error of a store that does not respond, or nil.
	Store func(context.Context) error
	// Certificates count issued certificates.
	Certificates *certificates.Metrics
	// Streams count WebSockets to containers.
	Streams *remotecommand.Metrics
	// Users authenticate tokens.
	Users authn.TokenAuthenticator
	// Gates decide defaults.
	Gates *gate.Set

	// Independent are the kinds of Independent with the same AllowPrivileged and Gates. Several servers may share them.
	Independent []*resource.Definition
}

// Independent returns the kinds whose Dependencies are the rules for pods, metrics and gates at most.
func Independent(allowPrivileged bool, issued *certificates.Metrics, gates *gate.Set) []*resource.Definition {
	podRules := pod.Policy{Privileged: allowPrivileged}.Rules()
	return slices.Concat(
		apps.Definitions(podRules),
		events.Definitions(),
		autoscaling.Definitions(),
		batch.Definitions(podRules),
		certificates.Definitions(issued),
		networking.Definitions(),
		policy.Definitions(),
		admissionregistration.Definitions(),
		scheduling.Definitions(gates),
		lifecycle.Definitions(),
		coordination.Definitions(),
		node.Definitions(),
		discovery.Definitions(),
		flowcontrol.Definitions(),
		apiserverinternal.Definitions(),
		storage.Definitions(),
		storagemigration.Definitions(),
	)
}

// Definitions returns the built-in kinds with all versions. A RuntimeConfig enables those that are
// off by default.
func Definitions() []*resource.Definition { return Dependencies{}.Definitions() }

// Definitions returns the built-in kinds with these parts.
func (p Dependencies) Definitions() []*resource.Definition {
	if p.Certificates == nil {
		p.Certificates = certificates.NewMetrics()
	}
	if p.Streams == nil {
		p.Streams = remotecommand.NewMetrics()
	}
	if p.Kubelets == nil {
		p.Kubelets, _ = kubelet.New(kubelet.Options{}) // without files there is no error
	}
	if p.Network == nil {
		p.Network = proxy.Transport(nil)
	}
	if p.Authorizer == nil {
		p.Authorizer = &authz.Current{}
	}
	if p.Tokens == nil {
		p.Tokens = serviceaccount.NewIssuer(serviceaccount.Options{})
	}
	if p.Roles == nil {
		p.Roles = &authzrbac.Authorizer{}
	}
	if p.Store == nil {
		p.Store = func(context.Context) error { return errors.New("there is no store") }
	}
	if p.Users == nil {
		p.Users = &authn.Tokens{}
	}
	if p.Independent == nil {
		p.Independent = Independent(p.AllowPrivileged, p.Certificates, p.Gates)
	}
	nodes := core.Nodes(p.Kubelets, p.Network)
	podRules := pod.Policy{Privileged: p.AllowPrivileged}.Rules()
	pods := pod.Definitions(pod.Dependencies{
		Rules:   podRules,
		Budgets: one(p.Independent, "poddisruptionbudgets"), Evictions: policy.Evictions(),
		Nodes: nodes, Kubelets: p.Kubelets, Network: p.Network, Streams: p.Streams, Gates: p.Gates,
	})
	cores := core.Definitions(core.Dependencies{
		Pods: one(pods, "pods"), Nodes: nodes, EndpointSlices: one(p.Independent, "endpointslices"),
		ValidatingWebhooks: one(p.Independent, "validatingwebhookconfigurations"), MutatingWebhooks: one(p.Independent, "mutatingwebhookconfigurations"),
		Authorizer: p.Authorizer, Network: p.Network, Tokens: p.Tokens, Store: p.Store, PodRules: podRules,
	})
	return slices.Concat(
		cores,
		[]*resource.Definition{nodes},
		pods,
		authentication.Definitions(authentication.Users{Tokens: p.Users, Audiences: p.Tokens.Audiences()}),
		authorization.Definitions(p.Authorizer),
		rbac.Definitions(p.Authorizer, p.Roles),
		apiregistration.Definitions(),
		dra.Definitions(one(cores, "namespaces"), p.Authorizer),
		p.Independent,
	)
}

// one returns the kind with that plural.
func one(of []*resource.Definition, plural string) *resource.Definition {
	return of[slices.IndexFunc(of, func(d *resource.Definition) bool { return d.Plural == plural })]
}

// SystemNamespaces are the namespaces that always exist.
func SystemNamespaces() []string {
	return []string{
		metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
	}
}

// ImmortalNamespaces are the namespaces that cannot be deleted.
func ImmortalNamespaces() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
}
