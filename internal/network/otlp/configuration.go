package otlp

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/configfile"
)

// A Configuration is the content of a TracingConfiguration file.
type Configuration = apiserver.TracingConfiguration

const perMillion = 1_000_000

// Read reads a TracingConfiguration file. It returns nil without a file. Errors have kube-apiserver's words.
func Read(file string) (*Configuration, error) {
	if file == "" {
		return nil, nil
	}
	c, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read tracing config: %w", err)
	}
	if err := check(c).ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate tracing configuration: %w", err)
	}
	return c, nil
}

func decode(file string) (*Configuration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("unable to read tracing configuration from %q: %w", file, err)
	}
	c := &Configuration{}
	if err := configfile.DecodeInto(data, c); err != nil {
		return nil, fmt.Errorf("unable to decode tracing configuration data: %w", err)
	}
	return c, nil
}

func check(c *Configuration) (errs field.ErrorList) {
	var at *field.Path
	if rate := c.SamplingRatePerMillion; rate != nil && *rate < 0 {
		errs = append(errs, field.Invalid(at.Child("samplingRatePerMillion"), *rate, "sampling rate must be positive"))
	} else if rate != nil && *rate > perMillion {
		errs = append(errs, field.Invalid(at.Child("samplingRatePerMillion"), *rate, "sampling rate per million must be less than or equal to one million"))
	}
	if c.Endpoint == nil {
		return errs
	}
	to := *c.Endpoint
	if !strings.Contains(to, "//") {
		to = "dns://" + to
	}
	parsed, err := url.Parse(to)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(at.Child("endpoint"), to, err.Error()))
	case parsed.Scheme != "dns" && parsed.Scheme != "unix" && parsed.Scheme != "unix-abstract":
		errs = append(errs, field.Invalid(at.Child("endpoint"), to, fmt.Sprintf(
			"unsupported scheme: %v.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md", parsed.Scheme)))
	}
	return errs
}
