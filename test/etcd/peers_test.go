package etcd

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/test/process"
)

// peerFiles are certificates by which servers of one etcd trust each other.
type peerFiles struct{ ca, cert, key, proxies, proxyCert, proxyKey string }

const proxyName = "front-proxy-client"

func newPeerFiles(t *testing.T) (f peerFiles) {
	t.Helper()
	dir := t.TempDir()
	servers, proxies := pkitest.Authority(t, "servers"), pkitest.Authority(t, "front-proxies")
	f.ca, _ = pkitest.Write(t, dir, "servers", servers)
	f.proxies, _ = pkitest.Write(t, dir, "proxies", proxies)
	f.cert, f.key = pkitest.Write(t, dir, "server", pkitest.Sign(t, servers, x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes.default.svc"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}))
	f.proxyCert, f.proxyKey = pkitest.Write(t, dir, "proxy", pkitest.Client(t, proxies, proxyName))
	return f
}

// flags returns the flags of a kube-apiserver.
func (f peerFiles) flags() []string {
	return []string{
		"--tls-cert-file", f.cert, "--tls-private-key-file", f.key, "--peer-ca-file", f.ca,
		"--requestheader-client-ca-file", f.proxies, "--requestheader-allowed-names", proxyName,
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-uid-headers", "X-Remote-Uid",
		"--requestheader-group-headers", "X-Remote-Group", "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", f.proxyCert, "--proxy-client-key-file", f.proxyKey,
		"--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
	}
}

// serve starts anykind under the name of a host, with changes to the served kinds.
func (f peerFiles) serve(t *testing.T, url, host string, kinds builtin.RuntimeConfig) process.API {
	t.Helper()
	o := options(url)
	o.CertFile, o.KeyFile, o.Peers.CAFile, o.Hooks.Host = f.cert, f.key, f.ca, host
	headers := authn.StandardProxyHeaders()
	o.Authentication.FrontProxy = app.FrontProxy{
		CAFile: f.proxies, AllowedNames: []string{proxyName}, Headers: headers, CertFile: f.proxyCert, KeyFile: f.proxyKey,
	}
	o.RuntimeConfig = kinds
	admin := administrator(t, o)
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return process.API{Client: client, URL: admin.Host}
}

// discovered returns aggregated discovery: that of all servers, or with a profile that of one.
func discovered(ctx context.Context, api process.API, profile string) (list apidiscoveryv2.APIGroupDiscoveryList, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL+"/apis", nil)
	if err != nil {
		return list, err
	}
	r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"+profile)
	answer, err := api.Client.Do(r)
	if err != nil {
		return list, err
	}
	defer answer.Body.Close()
	return list, json.NewDecoder(answer.Body).Decode(&list)
}

// missing returns the given versions that discovery does not list.
func missing(list apidiscoveryv2.APIGroupDiscoveryList, versions ...string) (out []string) {
	listed := map[string]bool{}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			listed[g.Name+"/"+v.Version] = true
		}
	}
	return slices.DeleteFunc(versions, func(v string) bool { return listed[v] })
}

// A server forwards requests for a kind that only the other serves, and both list the kinds of both.
func TestPeers(t *testing.T) {
	url, files := Start(t), newPeerFiles(t)
	a := files.serve(t, url, "a.example.com", builtin.RuntimeConfig{"batch/v1": "false"})
	b := files.serve(t, url, "b.example.com", builtin.RuntimeConfig{"apps/v1": "false"})
	servedByPeers(t, a, b)
	definitionOfNoPeer(t, a, b)
	namespaceOfPeers(t, a, b)
	unchanged(t, a)
	for api, of := range map[process.API]string{a: "batch", b: "apps"} {
		page, err := api.Read(t.Context(), "/metrics")
		if want := fmt.Sprintf(`apiserver_rerouted_request_total{code="201",group=%q,`, of); err != nil || !strings.Contains(string(page), want) {
			t.Errorf("metrics lack %s: %v", want, err)
		}
	}
}

// unchanged checks that the merged document has an ETag, and exists as protobuf.
func unchanged(t *testing.T, api process.API) {
	t.Helper()
	const form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	get := func(media, known string) *http.Response {
		t.Helper()
		r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/apis", nil))
		r.Header.Set("Accept", media+form)
		if known != "" {
			r.Header.Set("If-None-Match", known)
		}
		answer := must[*http.Response](t)(api.Client.Do(r))
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	first := get("application/json", "")
	if again := get("application/json", first.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("the same document again: %s", again.Status)
	}
	if own := get("application/json;profile=nopeer", first.Header.Get("ETag")); own.StatusCode != http.StatusOK {
		t.Errorf("the document of one server: %s", own.Status)
	}
	answer := get("application/vnd.kubernetes.protobuf", "")
	body := must[[]byte](t)(io.ReadAll(answer.Body))
	var envelope runtime.Unknown
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := envelope.Unmarshal(bytes.TrimPrefix(body, []byte("k8s\x00"))); err != nil {
		t.Fatal(err)
	}
	if err := list.Unmarshal(envelope.Raw); err != nil || len(missing(list, "apps/v1", "batch/v1")) > 0 {
		t.Errorf("as protobuf it lacks %v: %v", missing(list, "apps/v1", "batch/v1"), err)
	}
}

// The same holds for a kube-apiserver and anykind.
func TestPeersBothWays(t *testing.T) {
	if !*bothWays {
		t.Skip("building kube-apiserver takes minutes; make both-ways does")
	}
	url, files := Start(t), newPeerFiles(t)
	kube := startKube(t, url, append(files.flags(), "--runtime-config=batch/v1=false")...)
	anykind := files.serve(t, url, "anykind.example.com", builtin.RuntimeConfig{"apps/v1": "false"})
	servedByPeers(t, kube, anykind)
	definitionOfNoPeer(t, kube, anykind)
	namespaceOfPeers(t, kube, anykind) // anykind has the controllers
}

// servedByPeers checks that two servers serve the kinds of both: a has no batch/v1, b no apps/v1.
func servedByPeers(t *testing.T, a, b process.API) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		here, err := discovered(ctx, a, "")
		if err != nil {
			return err
		}
		there, err := discovered(ctx, b, "")
		if lacks := missing(here, "apps/v1", "batch/v1"); err == nil && len(lacks) > 0 || !reflect.DeepEqual(here, there) {
			return fmt.Errorf("the servers list different kinds, without %v", lacks)
		}
		return err
	})
	for api, want := range map[process.API]string{a: "batch/v1", b: "apps/v1"} {
		own := must[apidiscoveryv2.APIGroupDiscoveryList](t)(discovered(t.Context(), api, ";profile=nopeer"))
		if lacks := missing(own, "apps/v1", "batch/v1"); !slices.Equal(lacks, []string{want}) {
			t.Errorf("the own kinds of a server lack %v, want %s", lacks, want)
		}
	}
	for collection := range workloads(t, "default") {
		for who, through := range map[string][2]process.API{"a": {a, b}, "b": {b, a}} {
			o := workloads(t, "default")[collection]
			o["metadata"] = map[string]any{"name": who}
			if err := through[0].Do(t.Context(), http.MethodPost, strings.TrimSuffix(collection, "/"), o, nil); err != nil {
				t.Errorf("through %s: %v", who, err)
				continue
			}
			same(t, a, b, collection+who)
			change(t, through[0], through[1], collection+who, who)
			if err := through[1].Do(t.Context(), http.MethodDelete, collection+who, nil, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

// workloads returns an object without a name of each kind that only one server has, by the path of the
// collection.
func workloads(t *testing.T, namespace string) map[string]map[string]any {
	t.Helper()
	const template = `"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":%q,"containers":[{"name":"c","image":"i"}]}}`
	all := map[string]map[string]any{}
	for collection, text := range map[string]string{
		"/apis/batch/v1/namespaces/" + namespace + "/jobs/":       fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","spec":{`+template+`}}`, "Never"),
		"/apis/apps/v1/namespaces/" + namespace + "/deployments/": fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"a":"b"}},`+template+`}}`, "Always"),
	} {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		all[collection] = o
	}
	return all
}

// namespaceOfPeers checks that the deletion of a namespace deletes objects of kinds that only one of the
// servers has.
func namespaceOfPeers(t *testing.T, a, b process.API) {
	t.Helper()
	const namespace = "/api/v1/namespaces/shared"
	if err := a.Do(t.Context(), http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "shared"}}, nil); err != nil {
		t.Fatal(err)
	}
	for collection, o := range workloads(t, "shared") {
		o["metadata"] = map[string]any{"name": "w"}
		if err := a.Do(t.Context(), http.MethodPost, strings.TrimSuffix(collection, "/"), o, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Do(t.Context(), http.MethodDelete, namespace, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := a.Do(ctx, http.MethodGet, namespace, nil, nil); code(err) != http.StatusNotFound {
			return fmt.Errorf("the namespace was deleted: %v", err)
		}
		return nil
	})
	for collection := range workloads(t, "shared") {
		if err := b.Do(t.Context(), http.MethodGet, collection+"w", nil, nil); code(err) != http.StatusNotFound {
			t.Errorf("%sw is left in a deleted namespace: %v", collection, err)
		}
	}
}

// definitionOfNoPeer checks that a custom kind is in the discovery of both servers, and no longer once
// it is deleted.
func definitionOfNoPeer(t *testing.T, a, b process.API) {
	t.Helper()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	crd, _ := definition(1)
	if err := a.Do(t.Context(), http.MethodPost, path, crd.Object, nil); err != nil {
		t.Fatal(err)
	}
	listed := func(want bool) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			for _, api := range []process.API{a, b} {
				list, err := discovered(ctx, api, "")
				if err != nil {
					return err
				}
				if got := len(missing(list, "example.com/v1")) == 0; got != want {
					return fmt.Errorf("discovery lists the custom kind: %v", got)
				}
			}
			return nil
		})
	}
	listed(true)
	if err := b.Do(t.Context(), http.MethodDelete, path+"/"+crd.GetName(), nil, nil); err != nil {
		t.Fatal(err)
	}
	listed(false)
}
