package releases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// The types that Prometheus accepts in a scrape, with native histograms and without.
const (
	acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.3"
	acceptOpen     = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
	acceptText     = "text/plain;version=0.0.4"
)

// finer is a histogram with more classic buckets in anykind, because anykind answers faster.
const finer = "apiserver_request_duration_seconds"

// TestHistograms compares the buckets of histograms, with the gate NativeHistograms and without it.
func TestHistograms(t *testing.T) {
	if *reference == "" {
		t.Skip("needs -reference start")
	}
	for _, gate := range []string{"NativeHistograms=true", "NativeHistograms=false"} {
		t.Run(gate, func(t *testing.T) {
			flags := []string{"--feature-gates=" + gate}
			p, err := servers.Start(t.Context(), servers.Options{Reference: *reference, Store: "memory", Dir: t.TempDir(), Theirs: flags, Ours: flags})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			for _, accept := range []string{acceptProtobuf, acceptOpen, acceptText} {
				theirs, ours := histograms(t, p.Theirs, accept), histograms(t, p.Ours, accept)
				compared := 0
				for _, name := range slices.Sorted(maps.Keys(ours)) {
					if theirs[name] == "" {
						continue
					}
					if name == finer {
						theirs[name], ours[name] = strings.Split(theirs[name], "classic")[0], strings.Split(ours[name], "classic")[0]
					}
					compared++
					if theirs[name] != ours[name] {
						t.Errorf("%s as %s:\n\tKubernetes %s\n\tanykind    %s", name, accept, theirs[name], ours[name])
					}
				}
				t.Logf("%d histograms as %s", compared, accept)
				if compared < 10 {
					t.Errorf("%d histograms are those of both", compared)
				}
			}
		})
	}
}

// histograms sends some requests, and describes the buckets of the histograms of a server by their names.
func histograms(t *testing.T, c *wire.Client, accept string) map[string]string {
	t.Helper()
	c.Do(t.Context(), wire.Step{Method: "POST", Path: "/api/v1/namespaces/default/configmaps", Body: []byte(`{"metadata":{"generateName":"a-"}}`), Header: []wire.Field{{Name: "Content-Type", Value: "application/json"}}})
	c.Do(t.Context(), wire.Step{Method: "GET", Path: "/api/v1/namespaces/default/configmaps"})
	c.Do(t.Context(), wire.Step{Method: "GET", Path: "/api", Header: []wire.Field{{Name: "Impersonate-User", Value: "a"}}})
	a := c.Do(t.Context(), wire.Step{Method: "GET", Path: "/metrics", Header: []wire.Field{{Name: "Accept", Value: accept}}})
	if a.Code != 200 {
		t.Fatal(a.Code, a.Failed)
	}
	out := map[string]string{}
	for decoder := expfmt.NewDecoder(bytes.NewReader(a.Body), expfmt.ResponseFormat(a.Header)); ; {
		family := &dto.MetricFamily{}
		if err := decoder.Decode(family); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			out[family.GetName()] = shape(family.GetMetric()[0].GetHistogram())
		}
	}
}

// shape describes the buckets of a histogram.
func shape(h *dto.Histogram) string {
	var out strings.Builder
	if h.Schema != nil {
		fmt.Fprintf(&out, "native with schema %d and zero threshold %g, ", h.GetSchema(), h.GetZeroThreshold())
	}
	out.WriteString("classic")
	for _, b := range h.GetBucket() {
		fmt.Fprintf(&out, " %g", b.GetUpperBound())
	}
	return out.String()
}
