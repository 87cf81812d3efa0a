package main

import (
	"os"
	"strings"
	"testing"
)

// Pages that a loader or a debugger changed stay in memory: no file has their content.
func TestMappings(t *testing.T) {
	const smaps = `00400000-01a03000 r-xp 00000000 fe:00 1835 /opt/any kind/anykind
Size:              22540 kB
Rss:               16692 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01a03000-01b00000 r--p 01603000 fe:00 1835 /opt/any kind/anykind
Rss:                 100 kB
Anonymous:             4 kB
01b00000-01c00000 rw-p 01703000 fe:00 1835 /opt/any kind/anykind
Rss:                 664 kB
Anonymous:             0 kB
01c00000-01d00000 r--p 00000000 fe:00 1836 /opt/lib/not-anykind
Rss:                  12 kB
Anonymous:             0 kB
7ffd31fb0000-7ffd31fd1000 rw-p 00000000 00:00 0 [stack]
Rss:                  20 kB
Anonymous:            20 kB
`
	all := mappings(strings.NewReader(smaps), "/opt/any kind/anykind")
	if len(all) != 3 {
		t.Fatalf("%d mappings: %+v", len(all), all)
	}
	if m := all[0]; m.from != 0x400000 || m.to != 0x1a03000 || m.resident != 16692 || !m.unchanged() {
		t.Errorf("code: %+v", m)
	}
	if all[1].unchanged() {
		t.Error("what the loader wrote counts as unchanged")
	}
	if all[2].unchanged() {
		t.Error("variables count as unchanged")
	}
}

// The program goes on as before, and has what it looks at.
func TestUnload(t *testing.T) {
	before := residentProgram(t)
	unload()
	if after := residentProgram(t); after > before/2 {
		t.Errorf("%d kB of the program are resident, and %d kB were", after, before)
	}
}

func residentProgram(t *testing.T) (kB int64) {
	t.Helper()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	for _, m := range mappings(maps, program) {
		if m.unchanged() {
			kB += m.resident
		}
	}
	if kB == 0 {
		t.Fatalf("nothing of %s is resident", program)
	}
	return kB
}
