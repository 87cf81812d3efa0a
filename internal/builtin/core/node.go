package core

import (
	"context"
	"errors"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/kubelet"
	"github.com/anykind/anykind/internal/proxy"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
)

// proxyVerbs are those of a proxy, which answers every method.
var proxyVerbs = []string{"create", "delete", "get", "patch", "update"}

// Nodes returns the kind of the machines that run pods.
func Nodes(kubelets *kubelet.Client, network http.RoundTripper) *resource.Definition {
	visit := &nodeVisit{kubelets: kubelets, network: network}
	visit.nodes = kind.New(resource.Definition{
		Plural: "nodes", Singular: "node", Kind: "Node", ShortNames: []string{"no"}, GroupPriority: kind.CorePriority,
		StoragePrefix: resource.BuiltInPrefix("minions"), // their first name
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			ValidateName:             apivalidation.NameIsDNSSubdomain,
		},
	}, kind.VersionOf[corev1.Node, corev1.NodeList](&resource.Version{
		Name:        "v1",
		Revert:      resource.Changing(revertNode),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{
			{
				Name: "proxy", Verbs: proxyVerbs, Kind: schema.GroupVersionKind{Kind: "NodeProxyOptions"},
				Connecter: visit, PathsBelow: true, Options: kind.Options[corev1.NodeProxyOptions](corev1.SchemeGroupVersion.WithKind("NodeProxyOptions")),
			},
			{
				Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: []string{"metadata", "status"},
				Revert: resource.Changing(revertNodeStatus),
			},
		},
		SelectableFields: map[string]func(map[string]any) string{
			"spec.unschedulable": func(node map[string]any) string {
				if kind.Value(node, "spec", "unschedulable") == true {
					return "true"
				}
				return "false"
			},
		},
		Columns: []resource.Column{kind.AgeColumn()},
	}, nil).WhenDecoded(defaultNode))
	return visit.nodes
}

// defaultNode lets pods have all that a node has, and its first range of addresses be one
// of its ranges.
func defaultNode(node map[string]any) {
	status := kind.Tree(node, "status")
	if status["allocatable"] == nil && status["capacity"] != nil {
		kind.Put(status, "allocatable", status["capacity"])
	}
	spec := kind.Tree(node, "spec")
	first, ranges := kind.Text(spec, "podCIDR"), kind.List(spec, "podCIDRs")
	switch {
	case first != "" && (len(ranges) == 0 || ranges[0] != first):
		spec["podCIDRs"] = []any{first}
	case first == "" && len(ranges) > 0:
		spec["podCIDR"] = ranges[0]
	}
}

// revertNode leaves the status to its subresource. A new node brings one. Nobody
// configures kubelets by the spec any more.
func revertNode(node, old map[string]any) {
	if old != nil {
		kind.Put(node, "status", old["status"])
	} else {
		delete(kind.Child(node, "status"), "config")
	}
	if kind.Value(old, "spec", "configSource") == nil {
		delete(kind.Child(node, "spec"), "configSource")
	}
}

// revertNodeStatus keeps the spec. A status says only that kubelets are configured if it
// said so before.
func revertNodeStatus(node, old map[string]any) {
	kind.Put(node, "spec", old["spec"])
	if kind.Value(old, "status", "config") == nil {
		delete(kind.Child(node, "status"), "config")
	}
}

// A nodeVisit is the subresource proxy of nodes: what the kubelet says, or another program
// on a port of the node.
type nodeVisit struct {
	nodes    *resource.Definition
	kubelets *kubelet.Client
	network  http.RoundTripper
}

func (v *nodeVisit) Connect(ctx context.Context, c resource.Connection) (http.Handler, error) {
	scheme, name, port, ok := utilnet.SplitSchemeNamePort(c.Name)
	if !ok {
		return nil, status.BadRequest("invalid node request %q", c.Name)
	}
	node, err := c.Objects.Get(ctx, v.nodes, "", name)
	if err != nil {
		return nil, err
	}
	to, err := v.kubelets.Locate(kind.Typed[corev1.Node](node))
	if err != nil {
		return nil, err
	}
	if err := mayVisit(ctx, to.Hostname()); err != nil {
		return nil, status.BadRequest("%s", err)
	}
	if port == "" || port == to.Port() {
		to.Path = c.Path
		return proxy.Page{To: to, Transport: v.kubelets.Transport()}, nil
	}
	return proxy.Page{To: proxy.At(scheme, to.Hostname(), port, c.Path), Transport: v.network}, nil
}

// mayVisit returns why a client may not be led to a host.
func mayVisit(ctx context.Context, host string) error {
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("no addresses for hostname")
	}
	for _, a := range found {
		if !proxy.Reachable(a.IP.String()) {
			return errors.New("address not allowed")
		}
	}
	return nil
}
