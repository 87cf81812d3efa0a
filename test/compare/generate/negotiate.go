package generate

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/wire"
)

// accepts are Accept headers, usual and unusual ones.
var accepts = []string{
	"*/*", "application/*", "text/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "application/cbor-seq",
	"text/html", "text/plain", "image/png", "", " ", "bogus", "application/json;q=0", "application/yaml;q=0.5,application/json;q=0.4", "application/json;q=0.1,*/*;q=0.9",
	"application/json;charset=utf-8", "application/json;pretty=1", "application/json;bogus=1", "APPLICATION/JSON", "application/json,", ",application/json", "application/json;", "application/json;as=Bogus;v=v1;g=meta.k8s.io",
	"application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table", "application/json;as=Table;g=meta.k8s.io", "application/json;as=Table;v=v1;g=other", tableV1, partial, partialList, tableV1 + ",application/json",
	"application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/cbor;as=Table;v=v1;g=meta.k8s.io",
	"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch", "application/bogus,application/json", "application/bogus;q=1,application/yaml;q=0.2", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "application/json; as=Table; v=v1; g=meta.k8s.io",
	"application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/json;profile=x", "text/yaml", "application/x-yaml", "application/vnd.kubernetes.protobuf, */*",
}

var contentTypes = []string{
	"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/plain", "", "bogus", "application/json; charset=utf-8", "application/json;charset=latin1", "application/json, application/yaml",
	"application/x-www-form-urlencoded", "multipart/form-data", "*/*", "APPLICATION/JSON", "application/json;", ";", "text/json", "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor", "application/vnd.kubernetes.protobuf;stream=watch", "application/x-yaml", "application/json;as=Table",
}

// negotiate sends and accepts all sorts of media types.
func negotiate(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") })
	o := g.object(r)
	g.post(r, o)
	for range 3 {
		switch g.IntN(5) {
		case 0, 1:
			g.wants(r)
		case 2:
			g.sends(r, o)
		case 3:
			g.sendsEncoded(r, o)
		case 4:
			accept := one(g, accepts...)
			g.add(wire.Step{Kind: "negotiate", Resource: r.Label(), Method: one(g, "GET", "DELETE", "PATCH", "PUT"), Path: r.Path(namespaceOf(r), "none"), Header: []wire.Field{{Name: "Accept", Value: accept}}})
		}
	}
}

// wants adds a read with an Accept header.
func (g *G) wants(r *Resource) {
	header := []wire.Field{{Name: "Accept", Value: one(g, accepts...)}}
	if g.chance(10) {
		header = append(header, wire.Field{Name: "Accept", Value: one(g, accepts...)})
	}
	if g.chance(4) {
		header = append(header, wire.Field{Name: "Accept-Encoding", Value: one(g, "gzip", "gzip;q=0", "identity", "br", "deflate, gzip", "*", "")})
	}
	path, watch := pathOf(r), false
	switch g.IntN(4) {
	case 0:
		path = r.Path(namespaceOf(r), "") + "?labelSelector=scope%3D" + wire.Scope
	case 1:
		path, watch = r.Path(namespaceOf(r), "")+"?watch=true&labelSelector=scope%3D"+wire.Scope, true
	}
	g.add(wire.Step{Kind: "negotiate", Resource: r.Label(), Method: "GET", Path: path, Header: header, Watch: watch})
}

// sends adds a write whose Content-Type may not match its body.
func (g *G) sends(r *Resource, o map[string]any) {
	method, path := "PUT", pathOf(r)
	switch g.IntN(4) {
	case 0:
		method, path = "POST", r.Path(namespaceOf(r), "")
	case 1:
		method = "PATCH"
	case 2:
		method = "DELETE"
	}
	header := typed(one(g, contentTypes...))
	if g.chance(4) {
		header = append(header, wire.Field{Name: "Accept", Value: one(g, accepts...)})
	}
	if g.chance(12) {
		header = header[1:]
	}
	s := wire.Step{Kind: "negotiate", Resource: r.Label(), Method: method, Path: path, Header: header, Body: encode(o)}
	if g.chance(6) {
		s.Header = append(s.Header, wire.Field{Name: "Content-Encoding", Value: one(g, "gzip", "identity", "deflate", "bogus", "gzip, gzip")})
		s.Gzip = g.chance(2)
	}
	g.add(s)
}

// sendsEncoded adds a write in another encoding than JSON.
func (g *G) sendsEncoded(r *Resource, o map[string]any) {
	o = clone(o).(map[string]any)
	name := one(g, wire.Scope+"-x", wire.Scope)
	at(o, "metadata")["name"] = name
	s := wire.Step{Kind: "encoded", Resource: r.Label(), Method: "POST", Path: r.Path(namespaceOf(r), "") + one(g, "", "", "?fieldValidation=Strict")}
	switch g.IntN(4) {
	case 0:
		s.Header = typed("application/yaml")
		s.Body, _ = yaml.Marshal(o) // JSON types always marshal
	case 1:
		s.Header = typed("application/cbor")
		s.Body, _ = direct.Marshal(o)
	default:
		s.Header, s.Body = typed("application/vnd.kubernetes.protobuf"), g.protobuf(r, name)
	}
	if g.chance(5) {
		s.Body = g.damage(s.Body)
	}
	if g.chance(2) {
		s.Header = append(s.Header, wire.Field{Name: "Accept", Value: one(g, "application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "application/cbor")})
	}
	g.add(s)
}

// protobuf returns a ConfigMap in protobuf, with the type of the resource in its envelope.
func (g *G) protobuf(r *Resource, name string) []byte {
	o := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"scope": wire.Scope}}, Data: map[string]string{"k": "v"}}
	inner, _ := o.Marshal() // a ConfigMap always marshals
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: r.APIVersion(), Kind: r.Kind}, Raw: inner}
	if g.chance(6) {
		envelope.ContentType = one(g, "application/json", "application/vnd.kubernetes.protobuf", "x")
	}
	if g.chance(12) {
		envelope.Kind = one(g, "", "Bogus")
	}
	body, _ := envelope.Marshal()
	return append([]byte("k8s\x00"), body...)
}

// damage makes a body that may not decode.
func (g *G) damage(body []byte) []byte {
	body = bytes.Clone(body)
	if len(body) == 0 {
		return body
	}
	switch g.IntN(5) {
	case 0:
		return body[:g.IntN(len(body))]
	case 1:
		body[g.IntN(len(body))] ^= byte(1 << g.IntN(8))
	case 2:
		return append(body, body...)
	case 3:
		i := g.IntN(len(body))
		return append(body[:i:i], body[min(i+1+g.IntN(4), len(body)):]...)
	case 4:
		return append(body, one(g, "\n", "x", "\x00", "{}", "---\n")...)
	}
	return body
}
