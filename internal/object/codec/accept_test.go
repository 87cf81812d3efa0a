package codec

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/anykind/anykind/internal/object/status"
)

const kubectlGet = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

func request(accept, query, agent string) *http.Request {
	r := httptest.NewRequest("GET", "/apis/g/v1/things?"+query, nil)
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", agent)
	return r
}

func TestAccept(t *testing.T) {
	const none = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	const noStream = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	for _, tt := range []struct {
		accept string
		shape  Shape
		want   Format
		err    string
	}{
		{accept: ""},
		{accept: "*/*"},
		{accept: "*"},
		{accept: "application/*"},
		{accept: "application/json"},
		{accept: " application/json ; charset=utf-8 "},
		{accept: "application/json;foo=bar"},
		{accept: "application/json;sv=v1"},
		{accept: "application/json;sv=v2", err: none},
		{accept: "text/html", err: none},
		{accept: "text/*", err: none},
		{accept: "nonsense", err: none},
		{accept: "application/cbor", err: none},
		{accept: "text/html,application/xhtml+xml,*/*;q=0.8"},
		{accept: "application/vnd.kubernetes.protobuf", err: none},
		{accept: "application/vnd.kubernetes.protobuf,application/json"},
		{accept: "application/json;pretty=1", want: Format{Pretty: true}},
		{accept: "application/json;pretty=true"},
		{accept: "application/yaml", want: Format{Media: YAML}},
		{accept: "application/json;q=0"},
		{accept: "application/json;q=0.1,application/yaml;q=0.2", want: Format{Media: YAML}},
		{accept: "application/yaml;q=0.1,application/json;q=0.2"},
		// A name precedes a wildcard, whatever their qualities, unless the header has them the
		// other way round.
		{accept: "*/*;q=0.9,application/yaml;q=0.1", want: Format{Media: YAML}},
		{accept: "application/yaml;q=0.1,*/*;q=0.9"},

		{accept: kubectlGet, shape: List, want: Format{As: Table, Version: "v1"}},
		{accept: kubectlGet, shape: Watch, want: Format{As: Table, Version: "v1"}},
		{accept: "application/json;as=Table;v=v1beta1;g=meta.k8s.io", want: Format{As: Table, Version: "v1beta1"}},
		{accept: "application/yaml;as=Table;v=v1;g=meta.k8s.io", want: Format{Media: YAML, As: Table, Version: "v1"}},
		{accept: "application/json;as=Table;v=v2;g=meta.k8s.io", err: none},
		{accept: "application/json;as=Table;v=v1;g=example.com", err: none},
		{accept: "application/json;as=Table", err: none},
		{accept: "application/json;g=meta.k8s.io", err: none},
		{accept: "application/json;as=Foo;v=v1;g=meta.k8s.io,application/yaml", want: Format{Media: YAML}},
		{accept: "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
			want: Format{Media: Protobuf, As: PartialMetadata, Version: "v1"}},
		{accept: "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", err: none},
		{accept: "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", shape: List},
		{accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", shape: List, want: Format{As: PartialMetadataList, Version: "v1"}},
		{accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", shape: Watch, want: Format{As: PartialMetadata, Version: "v1"}},
		{accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", shape: List,
			err: "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)"},
		{accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", shape: One,
			err: "you requested PartialObjectMetadataList, but the requested object is not a list (*unstructured.Unstructured)"},

		{accept: "application/json;stream=watch", shape: Watch},
		{accept: "application/json;stream=watch", shape: One},
		{accept: "application/json;stream=x", err: none},
		{accept: "application/yaml;stream=watch", err: none},
		{accept: "application/yaml;stream=watch,application/json", shape: Watch},
		{accept: "application/yaml", shape: Watch, err: noStream},
		{accept: "text/html", shape: Watch, err: none},
		{accept: "application/json;pretty=1", shape: Watch},
		// Kubernetes starts such a watch, and aborts it at the first event.
		{accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", shape: Watch,
			err: "you requested PartialObjectMetadataList, but the requested object is not a list (*unstructured.Unstructured)"},
	} {
		t.Run(fmt.Sprintf("%s/%d", tt.accept, tt.shape), func(t *testing.T) {
			var v View
			err := v.Accept(request(tt.accept, "", ""), tt.shape)
			if err == nil {
				err = v.Fits(tt.shape)
			}
			got := v.Format
			if tt.err != "" {
				if err == nil || err.Error() != tt.err || status.Of(err).Code != 406 || status.Of(err).Reason != "NotAcceptable" {
					t.Errorf("error %v, want 406 %s", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

// The route of a native path is chosen by full media types only. Errors have the words of the
// router of kube-apiserver.
func TestRoute(t *testing.T) {
	const names = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	const streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	for accept, found := range map[string]bool{
		"": true, "*/*": true, "application/json": true, "application/yaml": true, "application/vnd.kubernetes.protobuf": true,
		" application/json ; q=0.1": true, "text/html,*/*;q=0.8": true, "application/xml, application/json": true, kubectlGet: true,
		"application/json;as=Nothing;v=v1;g=meta.k8s.io": true, "application/json;sv=v2": true, "application/yaml;stream=watch": true,
		"application/*": false, "*": false, "text/*": false, "text/html": false, "APPLICATION/JSON": false, "nonsense": false, ",": false,
		"application/cbor": false,
	} {
		for shape, want := range map[Shape]string{One: names, List: names + streams, Watch: names + streams} {
			switch err := (Offer{}).Route(request(accept, "", ""), shape); {
			case found && err != nil:
				t.Errorf("%q: %v", accept, err)
			case !found && (err == nil || err.Error() != want || status.Of(err).Code != 406 || status.Of(err).Reason != "NotAcceptable"):
				t.Errorf("%q: %v, want %s", accept, err, want)
			}
		}
	}
	if err := (Offer{CBOR: true}).Route(request("application/cbor", "", ""), One); err != nil {
		t.Error(err)
	}
}

// An object with a Go type has protobuf, which is not preferred to other types. A Table has none.
func TestAcceptOfTyped(t *testing.T) {
	const none = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	for _, tt := range []struct {
		accept string
		shape  Shape
		want   Format
		err    string
	}{
		{accept: "*/*"},
		{accept: "application/*", shape: List},
		{accept: "application/vnd.kubernetes.protobuf", want: Format{Media: Protobuf}},
		{accept: "application/vnd.kubernetes.protobuf, */*", want: Format{Media: Protobuf}},
		{accept: "application/vnd.kubernetes.protobuf", shape: Watch, want: Format{Media: Protobuf}},
		{accept: "application/vnd.kubernetes.protobuf;stream=watch", shape: Watch, want: Format{Media: Protobuf}},
		{accept: "application/vnd.kubernetes.protobuf;stream=watch", want: Format{Media: Protobuf}},
		{accept: "application/vnd.kubernetes.protobuf;q=0.5,application/json", shape: List},
		{accept: "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io", shape: List,
			want: Format{Media: Protobuf, As: PartialMetadataList, Version: "v1beta1"}},
		{accept: "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", shape: List, err: none},
		{accept: "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf", want: Format{Media: Protobuf}},
		{accept: "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", shape: List,
			err: "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"},
		{accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
			err: "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"},
	} {
		v := View{New: configMap.New}
		err := v.Accept(request(tt.accept, "", ""), tt.shape)
		if err == nil {
			err = v.Fits(tt.shape)
		}
		if err == nil && (tt.err != "" || v.Format != tt.want) || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %+v, %v", tt.accept, v.Format, err)
		}
	}
}

// Interactive clients get indented JSON by default.
func TestAcceptPretty(t *testing.T) {
	for _, tt := range []struct {
		query, agent string
		want         bool
	}{
		{"", "kubectl/v1.36", false},
		{"", "curl/8.0", true},
		{"", "Wget/1.2", true},
		{"", "Mozilla/5.0 (X11)", true},
		{"pretty=1", "kubectl", true},
		{"pretty=true", "kubectl", true},
		{"pretty=false", "curl/8.0", false},
		{"pretty=0", "curl/8.0", false},
		{"pretty=nonsense", "curl/8.0", false},
		{"pretty=", "curl/8.0", true},
		{"x=pretty", "kubectl", false},
	} {
		var v View
		if err := v.Accept(request("", tt.query, tt.agent), One); err != nil || v.Format.Pretty != tt.want {
			t.Errorf("%q %q: %v, %v, want %v", tt.query, tt.agent, v.Format.Pretty, err, tt.want)
		}
	}
}

// A Status is never a Table, and is sent even if no media type is accepted.
func TestAcceptStatus(t *testing.T) {
	for _, tt := range []struct {
		accept string
		want   Format
	}{
		{"", Format{}},
		{"application/json", Format{}},
		{"application/yaml", Format{Media: YAML}},
		{kubectlGet, Format{}},
		{"application/vnd.kubernetes.protobuf", Format{Media: Protobuf}},
		{"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", Format{Pretty: true}},
		{"text/html", Format{Pretty: true}},
		{"application/json;as=Table;v=v1;g=meta.k8s.io", Format{Pretty: true}},
		{"application/json;sv=v1", Format{Pretty: true}},
	} {
		if got, _ := AcceptStatus(request(tt.accept, "", "")); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.accept, got, tt.want)
		}
	}
}

func TestContentType(t *testing.T) {
	for header, want := range map[string]Media{
		"": JSON, "application/json": JSON, "application/json; charset=utf-8": JSON, "APPLICATION/JSON": JSON,
		"application/yaml": YAML, "application/yaml;x=y": YAML,
	} {
		if got, err := (Offer{}).ContentType(header); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", header, got, err, want)
		}
	}
	const want = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	for _, header := range []string{"text/plain", "*/*", "application/json;;", "json", "application/cbor", "application/json-patch+json"} {
		if _, err := (Offer{}).ContentType(header); err == nil || err.Error() != want || status.Of(err).Code != 415 {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestParseAccept(t *testing.T) {
	got := ParseAccept("text/html;q=0.5, */*;q=0.1 ,application/json;as=X;;bad;a=b=c;v = v1 ;q=0.9,/,a/b/c,a/,*")
	want := []Clause{
		{Type: "*", Subtype: "*", Quality: 1},
		{Type: "application", Subtype: "json", Quality: 0.9, Params: map[string]string{"as": "X", "v": "v1"}},
		{Type: "text", Subtype: "html", Quality: 0.5, Params: map[string]string{}},
		{Type: "*", Subtype: "*", Quality: 0.1, Params: map[string]string{}},
	}
	for i := range got {
		got[i].Quality = float64(int(got[i].Quality*100+0.5)) / 100
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}
