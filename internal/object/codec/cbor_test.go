package codec

import (
	"bytes"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
)

// A server supports CBOR only if configured, and lists it then.
func TestOffer(t *testing.T) {
	r := request("application/cbor", "", "")
	var v View
	if err := v.Accept(r, One); err == nil {
		t.Error("a server that does not offer it accepted CBOR")
	}
	offer := Offer{CBOR: true}
	r = r.WithContext(offer.Context(r.Context()))
	if err := v.Accept(r, Watch); err != nil || v.Format.Media != CBOR || v.Format.StreamContentType() != "application/cbor-seq" {
		t.Errorf("%v, %+v", err, v.Format)
	}
	if got, _ := AcceptStatus(r); got.Media != CBOR {
		t.Errorf("a Status would be %v", got)
	}
	if m, err := offer.ContentType("application/cbor"); m != CBOR || err != nil {
		t.Errorf("%v, %v", m, err)
	}
	const all = "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
	if _, err := offer.ContentType("text/plain"); err == nil || !strings.HasSuffix(err.Error(), all) {
		t.Error(err)
	}
	table := r.Clone(r.Context())
	table.Header.Set("Accept", "application/cbor;as=Table;v=v1;g=meta.k8s.io")
	if err := v.Accept(table, List); err == nil {
		t.Error("a Table would be CBOR")
	}
	// The other media types are preferred.
	any := httptest.NewRequest("GET", "/", nil).WithContext(r.Context())
	any.Header.Set("Accept", "*/*")
	if err := v.Accept(any, One); err != nil || v.Format.Media != JSON {
		t.Errorf("%v, %+v", err, v.Format)
	}
	yaml := any.Clone(any.Context())
	yaml.Header.Set("Accept", "application/yaml")
	const streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq"
	if err := v.Accept(yaml, Watch); err != nil {
		t.Error(err)
	}
	if err := v.Fits(Watch); err == nil || !strings.HasSuffix(err.Error(), streams) {
		t.Error(err)
	}
}

// An object survives encoding and decoding as CBOR.
func TestCBORBothWays(t *testing.T) {
	for _, doc := range []string{
		`{}`,
		`{"apiVersion":"v1","big":9223372036854775807,"f":1.5,"kind":"K","list":[null,true,"é\u0000",{"a":[]}],"neg":-1}`,
		`{"f":1,"h":1e300}`,
	} {
		want, _, err := decodeJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		data, err := Format{Media: CBOR}.Render([]byte(doc))
		if err != nil || !IsCBOR(data) {
			t.Fatalf("%s: %v, %x", doc, err, data)
		}
		got, duplicates, err := Decode(CBOR, data)
		if err != nil || len(duplicates) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v, %v", doc, got, duplicates, err)
		}
	}
}

func TestCBORThatIsNoObject(t *testing.T) {
	const (
		form = "the object provided is unrecognized (must be of type Probe): unable to determine group/version/kind: "
		fit  = `Probe in version "v1" cannot be handled as a Probe: cbor: `
	)
	for _, tt := range []struct{ name, data, err string }{
		{"nothing", "", form + "EOF"},
		{"torn", "\xa1\x61", form + "unexpected EOF"},
		{"more than one item", "\xa0\xa0", form + "cbor: 1 bytes of extraneous data"},
		{"a list", "\x80", fit},
		{"a key twice", "\xa2\x41a\x01\x41a\x02", fit + "found duplicate map key"},
		{"not a number", "\xa1\x41a\xf9\x7e\x00", form + "cbor: data item of cbor type primitives is not accepted"},
		{"more than an int64", "\xa1\x41a\x1b\xff\xff\xff\xff\xff\xff\xff\xff", fit},
		{"keys that are numbers", "\xa1\x01\x02", fit},
		{"very deep", strings.Repeat("\xa1\x41a", 20_000) + "\xf6", form + "cbor: exceeded max nested level"},
		{"a length beyond the end", "\xbb\x7f\xff\xff\xff\xff\xff\xff\xff", form},
	} {
		_, _, err := DecodeObject(CBOR, []byte(tt.data), probe)
		if err == nil || status.Of(err).Code != 400 || !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
		}
	}
	// Some encoders write byte strings for text. In an object they become text.
	tree, _, err := Decode(CBOR, []byte("\xa1\x41a\x41\xff"))
	if err != nil {
		t.Fatal(err)
	}
	if got := tree["a"]; got != "\ufffd" {
		t.Errorf("got %q", got)
	}
}

// An event is one item of a sequence, and the object in it is a document.
func TestCBOREvents(t *testing.T) {
	v := View{Format: Format{Media: CBOR}, APIVersion: "codec.test/v1", Kind: "Probe"}
	e, err := object.Scan([]byte(`{"kind":"Probe","apiVersion":"codec.test/v1","metadata":{"name":"n"}}`), 7)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := v.AppendFrame([]byte("before"), Added, &e, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	frame = v.Format.AppendErrorFrame(frame, status.Of(status.BadRequest("no")))
	rest, ok := bytes.CutPrefix(frame, []byte("before"))
	if !ok || bytes.Count(rest, selfDescribed) != 4 {
		t.Fatalf("%q", frame)
	}
	second := bytes.LastIndex(rest, append(bytes.Clone(selfDescribed), 0xa2))
	for i, want := range []struct{ data, kind, name string }{
		{string(rest[:second]), Added, "n"}, {string(rest[second:]), Error, "no"},
	} {
		var event struct {
			Type   string         `json:"type"`
			Object map[string]any `json:"object"`
		}
		if err := direct.Unmarshal([]byte(want.data), &event); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		name, _ := object.Metadata(event.Object)["name"].(string)
		message, _ := event.Object["message"].(string)
		if event.Type != want.kind || name+message != want.name {
			t.Errorf("event %d: %+v", i, event)
		}
	}
}
