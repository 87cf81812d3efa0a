package flags

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/server"
)

// metricFlags select the exposed metrics.
type metricFlags struct {
	labels   map[string]string
	manifest string
	disabled []string
}

func (f *metricFlags) add(flags *pflag.FlagSet) {
	flags.StringToStringVar(&f.labels, "allow-metric-labels", nil,
		"values that a label of a metric may have, METRIC,LABEL='VALUE,VALUE'; series with other values are shown as one, with the value unexpected")
	flags.StringVar(&f.manifest, "allow-metric-labels-manifest", "",
		"file with such values: a mapping in YAML from \"METRIC,LABEL\" to \"VALUE,VALUE\"")
	flags.StringSliceVar(&f.disabled, "disabled-metrics", nil, "metrics that are not shown, by their full names")
}

// metricLabel is the syntax of a metric with a label.
var metricLabel = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*),([a-zA-Z_][a-zA-Z0-9_]*)$`)

func (f *metricFlags) options() (server.MetricOptions, error) {
	o := server.MetricOptions{Disabled: f.disabled}
	labels := f.labels
	if f.manifest != "" {
		if len(labels) > 0 {
			return o, errors.New("--allow-metric-labels and --allow-metric-labels-manifest cannot both be given")
		}
		data, err := os.ReadFile(f.manifest)
		if err == nil {
			err = yaml.Unmarshal(data, &labels)
		}
		if err != nil {
			return o, fmt.Errorf("--allow-metric-labels-manifest: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		named := metricLabel.FindStringSubmatch(key)
		if named == nil {
			return o, fmt.Errorf("allowed values of metric labels: %q: want METRIC,LABEL", key)
		}
		if o.Allowed == nil {
			o.Allowed = map[string]map[string][]string{}
		}
		if o.Allowed[named[1]] == nil {
			o.Allowed[named[1]] = map[string][]string{}
		}
		o.Allowed[named[1]][named[2]] = strings.Split(labels[key], ",")
	}
	return o, nil
}
