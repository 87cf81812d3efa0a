package generate

import "github.com/anykind/anykind/test/compare/wire"

// Aggregated sends requests to two API servers behind both servers: one responds, and one is absent.
var Aggregated = Kind{"aggregated", 5, aggregated}

func aggregated(g *G) {
	for range 3 {
		root := "/apis/" + one(g, "present", "present", "absent") + ".example.com/v1"
		path := one(g, root+"/namespaces/"+wire.Scope+"/roses/"+wire.Scope, root+"/namespaces/"+wire.Scope+"/roses", root+"/roses?watch=false", root+"/roses/teapot", root+"/roses/"+wire.Scope+"/status", root, root+"/")
		s := wire.Step{Kind: "aggregated", Method: one(g, "GET", "GET", "POST", "PUT", "PATCH", "DELETE"), Path: path, Around: true}
		if s.Method == "POST" || s.Method == "PUT" || s.Method == "PATCH" {
			s.Header, s.Body = typed(one(g, "application/json", mergePatch)), []byte(`{"kind":"Rose","metadata":{"name":"`+wire.Scope+`"}}`)
		}
		g.add(s)
	}
}
