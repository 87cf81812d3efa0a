package controlplane

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// A log is the output of a program so far.
type log struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.Write(p)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}

// grave matches an error or fatal error of klog, by its letter and date, or a panic of the runtime.
var grave = regexp.MustCompile(`^([EF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ |panic: |fatal error: )`)

//go:embed known.txt
var knownText string

// A known error is one that a program may log against any server.
type known struct {
	program string
	pattern *regexp.Regexp
}

// knownErrors reads known.txt.
func knownErrors() ([]known, error) {
	var all []known
	for line := range strings.Lines(knownText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		program, expression, found := strings.Cut(line, " ")
		if !found {
			return nil, fmt.Errorf("known.txt: %q is no program and expression", line)
		}
		pattern, err := regexp.Compile(expression)
		if err != nil {
			return nil, fmt.Errorf("known.txt: %w", err)
		}
		all = append(all, known{program, pattern})
	}
	return all, nil
}

// errors returns the unknown errors in the log of a program.
func (l *log) errors(program string) ([]string, error) {
	all, err := knownErrors()
	if err != nil {
		return nil, err
	}
	var lines []string
	scan := bufio.NewScanner(strings.NewReader(l.text()))
	scan.Buffer(nil, 10<<20)
	for scan.Scan() {
		line := scan.Text()
		if strings.HasSuffix(line, "=<") { // the value has several lines, up to a closing one
			for scan.Scan() && !strings.HasPrefix(scan.Text(), " >") {
				line += " " + strings.TrimSpace(scan.Text())
			}
		}
		if grave.MatchString(line) && !isKnown(all, program, line) {
			lines = append(lines, line)
		}
	}
	return lines, scan.Err()
}

func isKnown(all []known, program, line string) bool {
	for _, k := range all {
		if (k.program == program || k.program == "*") && k.pattern.MatchString(line) {
			return true
		}
	}
	return false
}
