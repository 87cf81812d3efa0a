package flags

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/app"
)

// keeping is the value of --history: a time, a size, both, or forever.
type keeping struct {
	On       bool
	Keep     time.Duration
	MaxBytes int64
}

// remembering returns the configuration of a history.
func (k keeping) remembering(i intervals) app.Remembering {
	return app.Remembering{On: k.On, Keep: k.Keep, MaxBytes: k.MaxBytes, Intervals: i}
}

const (
	forever = "forever"
	day     = 24 * time.Hour
)

// Set parses a value, and replaces an earlier one.
func (k *keeping) Set(value string) error {
	set := keeping{On: true}
	if value != forever {
		for part := range strings.SplitSeq(value, ",") {
			if err := set.add(strings.TrimSpace(part)); err != nil {
				return err
			}
		}
	}
	*k = set
	return nil
}

// add parses a time or a size.
func (k *keeping) add(part string) error {
	if d, err := parseDays(part); err == nil {
		if d <= 0 || k.Keep != 0 {
			return fmt.Errorf("%q: want one time, which is more than 0; forever keeps everything", part)
		}
		k.Keep = d
		return nil
	}
	// A number without a unit may mean days or bytes.
	size, err := resource.ParseQuantity(strings.TrimSuffix(part, "B"))
	bytes, ok := size.AsInt64()
	if err != nil || !ok || strings.Trim(part, "0123456789.") == "" {
		return fmt.Errorf("%q: want a time such as 30d or 12h, a size such as 2GiB, both as 30d,2GiB, or forever", part)
	}
	if bytes <= 0 || k.MaxBytes != 0 {
		return fmt.Errorf("%q: want one size, which is more than 0; forever keeps everything", part)
	}
	k.MaxBytes = bytes
	return nil
}

// parseDays parses a time, such as 12h, 30d or 1d12h. Days come first.
func parseDays(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	hours, err := time.ParseDuration(days + "h")
	if err != nil {
		return 0, err
	}
	total := 24 * hours
	if hours > 0 && total/24 != hours {
		return 0, fmt.Errorf("%s days are too many", days)
	}
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil {
			return 0, err
		}
		total += more
	}
	return total, nil
}

// String returns a value that Set accepts, or "" for no history.
func (k *keeping) String() string {
	var parts []string
	switch {
	case !k.On:
		return ""
	case k.Keep%day == 0 && k.Keep > 0:
		parts = append(parts, fmt.Sprintf("%dd", k.Keep/day))
	case k.Keep > 0:
		parts = append(parts, k.Keep.String())
	}
	if k.MaxBytes > 0 {
		parts = append(parts, resource.NewQuantity(k.MaxBytes, resource.BinarySI).String()+"B")
	}
	if parts == nil {
		return forever
	}
	return strings.Join(parts, ",")
}

// Type is the name of the value in help.
func (*keeping) Type() string { return "history" }

// intervals is the value of --history-interval: resources with times.
type intervals map[schema.GroupResource]time.Duration

// Set parses a value, and adds it to earlier ones.
func (i *intervals) Set(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		name, length, _ := strings.Cut(strings.TrimSpace(part), "=")
		every, err := parseDays(length)
		if err != nil || name == "" || every < time.Second {
			return fmt.Errorf("%q: want a resource and a time of a second or more, such as leases.coordination.k8s.io=1h", part)
		}
		if *i == nil {
			*i = intervals{}
		}
		(*i)[schema.ParseGroupResource(name)] = every
	}
	return nil
}

// String returns a value that Set accepts, or "" for none.
func (i *intervals) String() string {
	var parts []string
	for r, every := range *i {
		parts = append(parts, r.String()+"="+every.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Type is the name of the value in help.
func (*intervals) Type() string { return "resource=time" }
