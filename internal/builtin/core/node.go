package core

import (
	"context"
	"errors"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// proxyVerbs are the methods of a proxy, all of them.
var proxyVerbs = []string{"create", "delete", "get", "patch", "update"}

// Nodes returns the kind Node.
func Nodes(kubelets *kubelet.Client, network http.RoundTripper) *resource.Definition {
	visit := &nodeVisit{kubelets: kubelets, network: network}
	nodes := nodeKind()
	nodes.Version = &resource.Version{Subresources: []resource.Subresource{{
		Name: "proxy", Verbs: proxyVerbs, Kind: corev1.SchemeGroupVersion.WithKind("NodeProxyOptions"), Connecter: visit, PathsBelow: true,
		Options: corev1.NodeProxyOptions{}, ReadOptions: kind.ReadOptions[corev1.NodeProxyOptions](corev1.SchemeGroupVersion.WithKind("NodeProxyOptions")),
	}}}
	visit.nodes = nodes.New()
	return visit.nodes
}

// A nodeVisit is the subresource proxy of nodes. It connects to the kubelet or to another port of
// the node.
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
	to, err := v.kubelets.Locate(kind.ValueOf[corev1.Node](node))
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

// mayVisit returns an error if a host has an address to which clients must not be proxied.
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
