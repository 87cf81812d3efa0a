package batch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An interval is a range of consecutive indexes of a Job.
type interval struct{ first, last int32 }

// parseIndexes parses indexes such as "1,3-5,7", all less than completions. It returns nothing else
// after an error.
func parseIndexes(text string, completions int32) (out []interval, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		in, err := parseInterval(part, completions)
		if err != nil {
			return nil, err
		}
		if n := len(out); n > 0 && out[n-1].last >= in.first {
			return nil, notIncreasing(out[n-1].last, in.first)
		}
		out = append(out, in)
	}
	return out, nil
}

func notIncreasing(before, after int32) error {
	return fmt.Errorf("non-increasing order, previous: %d, current: %d", before, after)
}

func parseInterval(text string, completions int32) (out interval, err error) {
	first, last, several := strings.Cut(text, "-")
	if strings.Contains(last, "-") {
		return out, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", text)
	}
	if out.first, err = parseIndex(first, completions); err != nil {
		return out, err
	}
	out.last = out.first
	if !several {
		return out, nil
	}
	if out.last, err = parseIndex(last, completions); err != nil {
		return out, err
	}
	if out.first >= out.last {
		return out, notIncreasing(out.first, out.last)
	}
	return out, nil
}

func parseIndex(text string, completions int32) (int32, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("cannot convert string to integer for index: %q", text)
	case n >= int(completions):
		return 0, fmt.Errorf("too large index: %q", text)
	}
	return int32(n), nil
}

// overlap returns an error for an index that is both completed and failed. It ignores invalid
// intervals: other rules report them.
func overlap(completed, failed string, completions int32) error {
	if completed == "" || failed == "" {
		return nil
	}
	done, lost := readable(completed, completions), readable(failed, completions)
	for len(done) > 0 && len(lost) > 0 {
		d, l := done[0], lost[0]
		switch {
		case d.first <= l.last && l.first <= d.last:
			return errors.New("failedIndexes and completedIndexes overlap at index: " + strconv.Itoa(int(max(d.first, l.first))))
		case d.first <= l.first:
			done = done[1:]
		default:
			lost = lost[1:]
		}
	}
	return nil
}

func readable(text string, completions int32) (out []interval) {
	for part := range strings.SplitSeq(text, ",") {
		if in, err := parseInterval(part, completions); err == nil {
			out = append(out, in)
		}
	}
	return out
}
