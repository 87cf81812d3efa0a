package manual

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

var book = Book{Source: "thing v1.0.0", Title: "Thing Manual", Date: time.Date(2026, 11, 22, 23, 0, 0, 0, time.FixedZone("west", -7200))}

func described() Command {
	return Command{
		Path: "thing", Usage: "thing [command]", Short: "Do things",
		Flags: []Flag{{Name: "help", Shorthand: "h", Usage: "help for thing"}},
		Commands: []Command{{
			Path: "thing make", Usage: "thing make FILE [flags]", Short: "Make one",
			Long:    "Make a thing\nof \"files\".\n\n.hidden files are 'made', too:\n  in C:\\things\n  .here\nand that is all.",
			Example: "  thing make a-b\n  thing make '.*'",
			Flags: []Flag{{Section: "Speed", Name: "fast", Usage: "make it fast"}, {Name: "dry-run", Usage: "make none"},
				{Name: "out", Shorthand: "o", Value: "DIR", Default: "things", Usage: ".dirs are\n.not allowed"}},
		}},
	}
}

func TestPages(t *testing.T) {
	pages := book.Pages(described())
	if got := slices.Sorted(maps.Keys(pages)); !slices.Equal(got, []string{"thing-make.1", "thing.1"}) {
		t.Fatal(got)
	}
	want := `.TH "THING\-MAKE" 1 2026-11-23 "thing v1.0.0" "Thing Manual"
.nh
.ad l
.SH NAME
thing\-make \- Make one
.SH SYNOPSIS
.B thing make FILE [flags]
.SH DESCRIPTION
Make a thing
of "files".
.PP
\&.hidden files are \(aqmade\(aq, too:
.RS 2
.nf
in C:\ethings
\&.here
.fi
.RE
and that is all.
.SH OPTIONS
.SS "Speed"
.TP
\fB\-\-fast\fR
make it fast
.SS "Global"
.TP
\fB\-\-dry\-run\fR
make none
.TP
\fB\-o\fR, \fB\-\-out\fR \fIDIR\fR
\&.dirs are
\&.not allowed (default things)
.SH EXAMPLES
.RS 2
.nf
thing make a\-b
thing make \(aq.*\(aq
.fi
.RE
.SH SEE ALSO
.BR thing (1)
`
	if got := string(pages["thing-make.1"]); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if root := string(pages["thing.1"]); !strings.Contains(root, ".SH COMMANDS\n.TP\n.BR thing\\-make (1)\nMake one\n") ||
		!strings.Contains(root, ".SH SYNOPSIS\n.B thing COMMAND\n") || strings.Contains(root, "SEE ALSO") {
		t.Error(root)
	}
}

// roff, if installed, accepts the pages.
func TestRoffUnderstands(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	for name, page := range book.Pages(described()) {
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww")
		cmd.Stdin = strings.NewReader(string(page))
		var warnings strings.Builder
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil || warnings.Len() > 0 || !strings.Contains(string(out), "Make one") {
			t.Errorf("%s: %v: %s\n%s", name, err, &warnings, out)
		}
	}
}
