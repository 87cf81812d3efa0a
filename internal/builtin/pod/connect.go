package pod

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/network/remotecommand"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// A connecter connects to the kubelet of a pod's node.
type connecter struct {
	pods, nodes *resource.Definition
	kubelets    *kubelet.Client
	metrics     *remotecommand.Metrics
}

// kubelet returns the node of a pod, and the address of its kubelet.
func (k *connecter) kubelet(ctx context.Context, all resource.Objects, pod map[string]any) (*corev1.Node, *url.URL, error) {
	name := kind.Text(pod, "spec", "nodeName")
	node, err := all.Get(ctx, k.nodes, "", name)
	if status.Is(err, metav1.StatusReasonNotFound) {
		return nil, nil, status.NotFound(podResource, name) // the error names the pod, as in Kubernetes
	}
	if err != nil {
		return nil, nil, err
	}
	typed := kind.ValueOf[corev1.Node](node)
	at, err := k.kubelets.Locate(typed)
	return typed, at, err
}

// A talk is a streaming subresource: exec, attach or portforward.
type talk struct {
	*connecter
	name string
	// path returns the path and the query for the kubelet.
	path func(pod map[string]any, options runtime.Object) (string, url.Values, error)
	// translate returns the handler for a kubelet that does not know WebSockets.
	translate func(t talk, to proxy.Stream, options runtime.Object) http.Handler
	// translates is the gate without which the kubelet gets all requests as they are.
	translates gate.Name
}

// Connect returns a handler that upgrades the connection. A permission to read a pod is not
// sufficient.
func (t talk) Connect(ctx context.Context, c resource.Connection) (http.Handler, error) {
	if c.Method == http.MethodGet && c.Gates.On(gate.AuthorizePodWebsocketUpgradeCreatePermission) {
		if err := request.May(ctx, "create"); err != nil {
			return nil, err
		}
	}
	pod, err := c.Objects.Get(ctx, t.pods, c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	path, query, err := t.path(pod, c.Options)
	if err != nil {
		return nil, err
	}
	if kind.Text(pod, "spec", "nodeName") == "" {
		return nil, status.BadRequest("pod %s does not have a host assigned", c.Name)
	}
	node, to, err := t.kubelet(ctx, c.Objects, pod)
	if err != nil {
		return nil, err
	}
	to.Path, to.RawQuery = path, query.Encode()
	as := proxy.Stream{To: to, Transport: t.kubelets.Transport()}
	if !c.Gates.On(t.translates) {
		return as, nil
	}
	knows := c.Gates.On(gate.ExtendWebSocketsToKubelet) && slices.Contains(node.Status.DeclaredFeatures, string(gate.ExtendWebSocketsToKubelet))
	t.metrics.Request(t.name, !knows)
	if knows {
		return as, nil
	}
	return t.translate(t, as, c.Options), nil
}

// asCommand translates the streams of exec and attach.
func asCommand(t talk, to proxy.Stream, options runtime.Object) http.Handler {
	c := remotecommand.Command{To: to.To, Transport: to.Transport, Metrics: t.metrics, Otherwise: to}
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		c.Streams = remotecommand.Streams{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY}
	case *corev1.PodAttachOptions:
		c.Streams = remotecommand.Streams{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY}
	}
	return c
}

// asTunnel unwraps the streams of portforward.
func asTunnel(t talk, to proxy.Stream, _ runtime.Object) http.Handler {
	return proxy.Tunnel{Stream: to, Answered: t.metrics.Tunnel}
}

func execPath(pod map[string]any, options runtime.Object) (string, url.Values, error) {
	o := options.(*corev1.PodExecOptions)
	query := streams(o.Stdin, o.Stdout, o.Stderr, o.TTY)
	for _, c := range o.Command {
		query.Add("command", c)
	}
	path, err := containerPath("exec", pod, o.Container)
	return path, query, err
}

func attachPath(pod map[string]any, options runtime.Object) (string, url.Values, error) {
	o := options.(*corev1.PodAttachOptions)
	path, err := containerPath("attach", pod, o.Container)
	return path, streams(o.Stdin, o.Stdout, o.Stderr, o.TTY), err
}

func forwardPath(pod map[string]any, options runtime.Object) (string, url.Values, error) {
	var ports []string
	for _, p := range options.(*corev1.PodPortForwardOptions).Ports {
		ports = append(ports, strconv.Itoa(int(p)))
	}
	query := url.Values{}
	if len(ports) > 0 {
		query.Set(corev1.PortHeader, strings.Join(ports, ","))
	}
	return fmt.Sprintf("/portForward/%s/%s", object.Namespace(pod), object.Name(pod)), query, nil
}

// streams encodes the requested streams as a kubelet expects them.
func streams(in, out, err, tty bool) url.Values {
	query := url.Values{}
	for name, there := range map[string]bool{
		corev1.ExecStdinParam: in, corev1.ExecStdoutParam: out, corev1.ExecStderrParam: err, corev1.ExecTTYParam: tty,
	} {
		if there {
			query.Set(name, "1")
		}
	}
	return query
}

func containerPath(what string, pod map[string]any, name string) (string, error) {
	container, err := containerOf(pod, name)
	return fmt.Sprintf("/%s/%s/%s/%s", what, object.Namespace(pod), object.Name(pod), container), err
}

// containerOf returns the container with that name, or the only one for "".
func containerOf(pod map[string]any, name string) (string, error) {
	var names []string
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range kind.List(pod, "spec", list) {
			c, _ := c.(map[string]any)
			names = append(names, kind.Text(c, "name"))
			if name != "" && kind.Text(c, "name") == name {
				return name, nil
			}
		}
	}
	containers := kind.List(pod, "spec", "containers")
	switch {
	case name != "":
		return "", status.BadRequest("container %s is not valid for pod %s", name, object.Name(pod))
	case len(containers) == 1:
		only, _ := containers[0].(map[string]any)
		return kind.Text(only, "name"), nil
	case len(containers) == 0:
		return "", status.BadRequest("a container name must be specified for pod %s", object.Name(pod))
	default:
		return "", status.BadRequest("a container name must be specified for pod %s, choose one of: %s", object.Name(pod), names)
	}
}

// A visit is the subresource proxy, which connects to a port of a pod.
type visit struct {
	pods    *resource.Definition
	network http.RoundTripper
}

func (v *visit) Connect(ctx context.Context, c resource.Connection) (http.Handler, error) {
	scheme, name, port, ok := net.SplitSchemeNamePort(c.Name)
	if !ok {
		return nil, status.BadRequest("invalid pod request %q", c.Name)
	}
	pod, err := c.Objects.Get(ctx, v.pods, c.Namespace, name)
	if err != nil {
		return nil, err
	}
	if port == "" {
		port = firstPort(pod)
	}
	ip := kind.Text(pod, "status", "podIP")
	if !proxy.Reachable(ip) {
		return nil, status.BadRequest("address not allowed")
	}
	return proxy.Page{To: proxy.At(scheme, ip, port, c.Path), Transport: v.network}, nil
}

// firstPort returns the first port in the containers of a pod.
func firstPort(pod map[string]any) string {
	for _, c := range kind.List(pod, "spec", "containers") {
		c, _ := c.(map[string]any)
		if ports := kind.List(c, "ports"); len(ports) > 0 {
			first, _ := ports[0].(map[string]any)
			return fmt.Sprint(first["containerPort"])
		}
	}
	return ""
}
