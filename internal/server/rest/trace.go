package rest

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/span"
)

// spans are the names of spans by verb. A watch has none, since it would last as long as the request.
var spans = map[string]string{
	"get": "Get", "list": "List", "create": "Create", "update": "Update", "patch": "Patch", "delete": "Delete", "deletecollection": "Delete",
}

// maxAgent limits the bytes of an attribute with the name of the client's program.
const maxAgent = 1024

// described returns the attributes of the span of a call, with the names of kube-apiserver.
func (r *call) described() []attribute.KeyValue {
	id := ""
	if q := request.From(r.Context()); q != nil {
		id = q.AuditID
	}
	client, agent := "unknown", r.UserAgent()
	if ip := net.GetClientIP(r.Request); ip != nil {
		client = ip.String()
	}
	if agent == "" {
		agent = "unknown"
	} else if len(agent) > maxAgent {
		agent = agent[:maxAgent] + "...TRUNCATED"
	}
	return []attribute.KeyValue{
		span.AuditID(id), attribute.String("accept", r.Header.Get("Accept")), attribute.String("client", client),
		attribute.String("api-group", r.info.Group), attribute.String("api-version", r.info.Version),
		attribute.String("resource", r.info.Resource), attribute.String("subresource", r.info.Subresource),
		attribute.String("namespace", r.info.Namespace), attribute.String("name", r.info.Name),
		attribute.String("scope", r.scope()), attribute.String("verb", r.verb()),
		attribute.String("protocol", r.Proto), attribute.String("url", r.URL.Path), attribute.String("user-agent", agent),
	}
}

// scope returns the extent of a call: an object, a namespace or the cluster.
func (r *call) scope() string {
	switch {
	case r.info.Name != "" || r.info.Verb == "create":
		return "resource"
	case r.info.Namespace != "":
		return "namespace"
	default:
		return "cluster"
	}
}

// verb returns the verb of a call as in metrics.
func (r *call) verb() string {
	switch {
	case r.info.Verb == "list":
		return "LIST"
	case r.info.Verb == "patch" && strings.HasPrefix(string(r.patchType()), "application/apply-patch"):
		return "APPLY"
	default:
		return r.Method
	}
}
