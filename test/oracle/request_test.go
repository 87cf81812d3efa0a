package oracle

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/anykind/anykind/internal/object/request"
)

var upstreamInfo = apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// asked has the attributes of a request, in a form common to both.
type asked struct {
	Resource                                                                       bool
	Verb, Path, Group, Version, Namespace, Kind, Subresource, Name, Fields, Labels string
	Incomplete                                                                     bool
}

func oursAsks(r *http.Request) asked {
	i := request.Parse(r)
	return asked{i.IsResource, i.Verb, i.Path, i.Group, i.Version, i.Namespace, i.Resource, i.Subresource, i.Name,
		i.FieldSelector, i.LabelSelector, i.Incomplete}
}

func upstreamAsks(r *http.Request) asked {
	i, err := upstreamInfo.NewRequestInfo(r)
	return asked{i.IsResourceRequest, i.Verb, i.Path, i.APIGroup, i.APIVersion, i.Namespace, i.Resource, i.Subresource, i.Name,
		i.FieldSelector, i.LabelSelector, err != nil}
}

// compareInfo compares the attributes of a request line from both.
func compareInfo(t *testing.T, method, line string) {
	t.Helper()
	u, err := url.ParseRequestURI(line)
	if err != nil {
		return // net/http rejects it
	}
	r := &http.Request{Method: method, URL: u, Header: http.Header{}}
	want := upstreamAsks(r)
	got := oursAsks(r)
	if want.Incomplete { // then the request is rejected, and the rest is unused
		want, got = asked{Incomplete: true}, asked{Incomplete: got.Incomplete}
	}
	if got != want {
		t.Errorf("%s %s:\n ours %+v\ntheirs %+v", method, line, got, want)
	}
}

var (
	methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "PROPFIND"}
	steps   = []string{
		"api", "apis", "v1", "apps", "example.com", "watch", "proxy", "namespaces", "pods", "configmaps", "status", "finalize",
		"scale", "log", "exec", "n", "default", "a", "", "", "%2F", "a%2Fb", "%20", "..", ".", "Namespaces", "*", "a%3Fb", "namespaces%2Fx",
	}
	queries = []string{
		"watch", "watch=", "watch=1", "watch=true", "watch=false", "watch=0", "watch=FALSE", "watch=maybe", "%77atch=1", "watch=false&watch=1",
		"fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name=a", "fieldSelector=metadata.name%3D%3Da,spec.x%3Db",
		"fieldSelector=metadata.name!%3Da", "fieldSelector=metadata.name%3D..", "fieldSelector=metadata.name%3Da%2Fb", "fieldSelector=spec.x%3Db",
		"fieldSelector=%3C", "field%53elector=metadata.name%3Dz", "fieldSelector=", "fieldSelector=metadata.name%3D",
		"labelSelector=a%3Db", "labelSelector=a in (b)", "labelSelector=%3D%3D", "limit=5", "limit=x", "timeoutSeconds=x", "resourceVersion=0",
		"sendInitialEvents=maybe", "allowWatchBookmarks=true", "continue=c", "a=%zz", "x;y=1", "watch=1;x", "fieldSelector=metadata.name%3Da;b",
	}
)

// A request has the same attributes here as in Kubernetes, whatever its line is.
func TestRequestInfo(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 1))
	for range 300_000 {
		var path strings.Builder
		if r.IntN(4) > 0 {
			path.WriteString([]string{"/api/v1", "/apis/apps/v1", "/api/v1/namespaces/n", "/apis/example.com/v1/namespaces/n"}[r.IntN(4)])
		}
		for range r.IntN(6) {
			fmt.Fprintf(&path, "/%s", steps[r.IntN(len(steps))])
		}
		if path.Len() == 0 || r.IntN(9) == 0 {
			path.WriteByte('/')
		}
		line := path.String()
		for i := range r.IntN(4) {
			line += []string{"?", "&", "&"}[i] + queries[r.IntN(len(queries))]
		}
		compareInfo(t, methods[r.IntN(len(methods))], line)
		if t.Failed() && t.Context().Err() == nil {
			return
		}
	}
}

func FuzzRequestInfo(f *testing.F) {
	f.Add("GET", "/api/v1/namespaces/n/pods/p/log?follow=1")
	f.Add("GET", "/apis/apps/v1/watch/namespaces/n/deployments?fieldSelector=metadata.name%3Da")
	f.Add("DELETE", "//api//v1/pods/")
	f.Fuzz(compareInfo)
}
