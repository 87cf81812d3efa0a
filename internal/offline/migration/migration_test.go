package migration

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func kinds() []Kind {
	return []Kind{
		{name: "crontabs.example.com", group: "example.com", names: []string{"crontabs", "crontab", "CronTab", "ct"}},
		{name: "crontabs.example.org", group: "example.org", names: []string{"crontabs", "crontab", "CronTab"}},
		{name: "backups.example.org", group: "example.org", names: []string{"backups", "backup", "Backup", "bu"}},
	}
}

func TestFind(t *testing.T) {
	for word, want := range map[string]string{
		"ct":                   "crontabs.example.com",
		"backup":               "backups.example.org",
		"Backup":               "backups.example.org",
		"crontabs.example.org": "crontabs.example.org",
		"crontab.example.com":  "crontabs.example.com",
		"bu.example.org":       "backups.example.org",
		"crontabs":             `"crontabs" is ambiguous: choose one of crontabs.example.com, crontabs.example.org`,
		"ct.example.org":       `no CustomResourceDefinition has the kind "ct.example.org"`,
		"pods":                 `no CustomResourceDefinition has the kind "pods"`,
	} {
		k, err := find(kinds(), word)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = k.Name()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

// The progress comes from the condition messages of Kubernetes.
func TestRead(t *testing.T) {
	var s State
	for _, tt := range []struct {
		kind, message string
		want          State
	}{
		{"Running", "The migration is running", State{}},
		{"Running", "The migration is running, 7/9 objects not yet migrated", State{Left: 7, Total: 9}},
		{"Running", "The migration is running, 6/9 objects not yet migrated; transient error: a\nb", State{Left: 6, Total: 9, Trouble: "a\nb"}},
		{"Running", "The migration is running, 9 objects verified migrated", State{Total: 9}},
		{"Succeeded", "Migration completed", State{Total: 9}},
	} {
		m := &migration{}
		m.Status.Conditions = []condition{{Type: tt.kind, Status: "True", Message: tt.message}}
		if m.read(&s); s != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.message, s, tt.want)
		}
	}
}

func states() []State {
	return []State{
		{Kind: "crontabs.example.com"},
		{Kind: "crontabs.example.com", Left: 90, Total: 90},
		{Kind: "crontabs.example.com", Left: 90, Total: 90},
		{Kind: "crontabs.example.com", Left: 60, Total: 90},
		{Kind: "crontabs.example.com", Left: 60, Total: 90, Trouble: "connection refused\nagain"},
		{Kind: "crontabs.example.com", Left: 0, Total: 90},
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	for _, s := range states() {
		p.Show(s)
	}
	p.End((&State{Kind: "crontabs.example.com", Total: 90}).result("v2"))
	p.End((&State{Kind: "backups.example.org"}).result("v1"))
	p.End("")
	const want = `crontabs.example.com: the migration is asked for
crontabs.example.com: 0 of 90 objects are migrated
crontabs.example.com: 30 of 90 objects are migrated
crontabs.example.com: 30 of 90 objects are migrated; it waits: connection refused
again
crontabs.example.com: 90 of 90 objects are migrated
crontabs.example.com: all 90 objects are stored in v2
backups.example.org: all objects are stored in v1
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestBar(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(0, 0)
	b := &bar{out: &out, now: func() time.Time { clock = clock.Add(2 * time.Second); return clock }}
	for _, s := range states() {
		b.Show(s)
	}
	b.End((&State{Kind: "crontabs.example.com", Total: 90}).result("v2"))
	want := []string{
		"crontabs.example.com: the migration is asked for",
		"crontabs.example.com [                              ]   0%  0/90",
		"crontabs.example.com [                              ]   0%  0/90",
		"crontabs.example.com [==========                    ]  33%  30/90  4s left",
		"crontabs.example.com: 30 of 90 objects are migrated; it waits: connection refus",
		"crontabs.example.com [==============================] 100%  90/90",
		"crontabs.example.com: all 90 objects are stored in v2\n",
	}
	got := strings.Split(out.String(), clear)[1:]
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A file is not a terminal.
func TestNewProgress(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p, ok := NewProgress(f).(*lines); !ok {
		t.Errorf("it is %T", p)
	}
}
