package otlp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"

// The errors are those of kube-apiserver.
func TestRead(t *testing.T) {
	const failed, invalid = "failed to read tracing config: unable to decode tracing configuration data: ", "failed to validate tracing configuration: "
	const schemes = "Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
	for _, test := range []struct{ content, want string }{
		{"", ""}, // kube-apiserver accepts an empty file, and one without a kind
		{"endpoint: localhost:4317", ""},
		{header, ""},
		{header + "endpoint: localhost:4317\nsamplingRatePerMillion: 1000000", ""},
		{strings.Replace(header, "v1", "v1beta1", 1) + "endpoint: dns://example.com:4317", ""},
		{strings.Replace(header, "v1", "v1alpha1", 1) + "endpoint: unix:///run/collector.sock", ""},
		{header + "endpoint: unix-abstract://collector\nsamplingRatePerMillion: 0", ""},
		{header + "samplingRatePerMillion: -1", invalid + "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"},
		{header + "samplingRatePerMillion: 1000001",
			invalid + "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million"},
		{header + "endpoint: http://localhost:4317", invalid + `endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  ` + schemes},
		{header + `endpoint: "dn%2s://localhost:4317"`,
			invalid + `endpoint: Invalid value: "dn%2s://localhost:4317": parse "dn%2s://localhost:4317": first path segment in URL cannot contain colon`},
		{header + "endpoint: http://x\nsamplingRatePerMillion: -5",
			invalid + `[samplingRatePerMillion: Invalid value: -5: sampling rate must be positive, endpoint: Invalid value: "http://x": unsupported scheme: http.  ` + schemes + "]"},
		{header + "endpointt: x", failed + `strict decoding error: unknown field "endpointt"`},
		{header + "samplingRatePerMillion: x", failed + "json: cannot unmarshal string into Go struct field TracingConfiguration.TracingConfiguration.samplingRatePerMillion of type int32"},
		{"apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration",
			failed + "converting (v1beta1.EgressSelectorConfiguration) to (apiserver.TracingConfiguration): unknown conversion"},
	} {
		file := filepath.Join(t.TempDir(), "tracing.yaml")
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got := ""
		c, err := Read(file)
		if err != nil {
			got = err.Error()
		}
		if got != test.want || (err == nil) != (c != nil) {
			t.Errorf("%s\n got %v, %q\nwant %q", test.content, c, got, test.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	if c, err := Read(""); c != nil || err != nil {
		t.Errorf("without a file: %v, %v", c, err)
	}
	_, err := Read("missing.yaml")
	if want := `failed to read tracing config: unable to read tracing configuration from "missing.yaml": open missing.yaml: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s...", err, want)
	}
}
