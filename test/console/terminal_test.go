package console

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	"golang.org/x/sys/unix"
)

// A pty is a pseudo terminal with a program.
type pty struct{ *os.File }

// startPty runs a program in a pseudo terminal.
func startPty(command ...string) (*pty, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	p := &pty{master}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), "HOME=/nonexistent", "LC_ALL=C.UTF-8", `PROMPT_COMMAND=PS1='root@web:\w# '`)
	c.Dir = "/"
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() { _ = c.Wait() }()
	return p, nil
}

// resize tells the program the size of its terminal.
func (p *pty) resize(columns, rows uint16) error {
	return unix.IoctlSetWinsize(int(p.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
}

// serveTerminal connects a WebSocket of kubectl exec with a program in a pseudo terminal.
func serveTerminal(c *websocket.Conn, command []string) error {
	p, err := startPty(command...)
	if err != nil {
		return err
	}
	defer p.Close()
	go func() {
		page := make([]byte, 4096)
		for {
			n, err := p.Read(page)
			if n > 0 {
				_ = websocket.Message.Send(c, append([]byte{1}, page[:n]...))
			}
			if err != nil { // the program has ended
				_ = websocket.Message.Send(c, append([]byte{3}, `{"status":"Success"}`...))
				_ = c.Close()
				return
			}
		}
	}()
	for {
		var message []byte
		if err := websocket.Message.Receive(c, &message); err != nil {
			return nil // the page has closed it
		}
		switch {
		case len(message) > 1 && message[0] == 0:
			_, err = p.Write(message[1:])
		case len(message) > 1 && message[0] == 4:
			var size struct{ Width, Height uint16 }
			if err = json.Unmarshal(message[1:], &size); err == nil {
				err = p.resize(size.Width, size.Height)
			}
		}
		if err != nil {
			return err
		}
	}
}

// A shell in a container can be used as in any terminal: programs draw, keys arrive, the window is as large as the page says.
func TestTerminal(t *testing.T) {
	OnlyOwn(t) // kube-apiserver speaks SPDY to this kubelet
	vi, err := installed("vi", "vim-tiny")
	if err != nil {
		t.Skip(err)
	}
	f := Start(t)
	startKubelet(t, f)
	f.Create(t, pods, podOnNode)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/-/pods/default/p?tab=terminal")
	screen := func(condition string) {
		t.Helper()
		p.Until(`(text => ` + condition + `)([...document.querySelectorAll(".screen > div")].map(e => e.innerText.replaceAll("\u00a0", " ").trimEnd()).join("\n"))`)
	}
	const area = ".keys-of-terminal"
	p.Click("Start a shell")
	screen(`/[$#]/.test(text)`)
	p.Until(`document.activeElement === document.querySelector("` + area + `")`)
	p.Keys("echo $((6*7)) ${#COLUMNS} `stty size`\n")
	screen(`/^42 \d+ \d+ \d+$/m.test(text)`)
	if got, want := Eval[string](p, `/^42 \d+ (\d+ \d+)$/m.exec([...document.querySelectorAll(".screen > div")].map(e => e.innerText).join("\n"))[1]`), Eval[string](p, `(term => { const probe = document.querySelector(".screen > div"); const rows = Math.floor((term.clientHeight - 16) / probe.offsetHeight); return String(rows) })(document.querySelector(".term"))`); !strings.HasPrefix(got, want+" ") {
		t.Errorf("the program sees %s, and the page has %s rows", got, want)
	}
	p.Keys("printf '\\033[1;31mred\\033[0m <b>\\n'\n")
	p.Until(`[...document.querySelectorAll(".screen span.bold.f1")].some(e => e.innerText === "red")`)

	file := filepath.Join(t.TempDir(), "poem")
	p.Keys(vi + " -u NONE " + file + "\n")
	screen(`(text.match(/^~$/gm) ?? []).length > 10`)
	p.Keys("iroses are red")
	p.Key("Enter")
	p.Keys("violets are blue")
	p.Key("Escape")
	p.Keys("kdd:wq\n")
	screen(`!text.includes("~\n~") && /[$#]/.test(text)`)
	if data, err := os.ReadFile(file); err != nil || string(data) != "violets are blue\n" {
		t.Errorf("%q %v", data, err)
	}
	p.Keys("echo st''art; sleep 1000\n")
	screen(`text.includes("\nstart\n")`)
	p.Key("c", "ctrl")
	screen(`/\^C\n?.*[$#]/.test(text)`)
	p.Keys("echo a''live\n")
	screen(`text.includes("\nalive\n")`)
	// Keys reach the shell while text is selected, and do not act on the page.
	Eval[any](p, `(document.querySelector(".term").focus(), getSelection().selectAllChildren(document.querySelector(".screen > div")), null)`)
	p.Keys("echo sel''ected\n")
	screen(`text.includes("\nselected\n")`)
	p.Keys("exit\n")
	screen(`text.includes("The shell has ended.")`)
	p.Key("Escape", "shift")
	p.Until(`document.activeElement !== document.querySelector("` + area + `")`)
	p.Click("Start again")
	screen(`/[$#]/.test(text) && !text.includes("alive")`)
}

// The screen of a terminal is the same as that of tmux, with the cursor, after random text and sequences.
func TestScreen(t *testing.T) {
	tmux, err := installed("tmux", "tmux")
	if err != nil {
		t.Skip(err)
	}
	const columns, rows, cases = 40, 12, 500
	dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 4))
	written := make([][]string, cases)
	for i := range written {
		written[i] = output(random)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(strings.Join(written[i], "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`stty raw -echo
for i in $(seq 0 %d); do
	printf '\033c'; cat %[2]s/$i; printf '\033[6n'; IFS= read -t 20 -rs -d R at || exit; printf %%s "${at#*[}" > %[2]s/$i.at
	%[3]s capture-pane -p -t $TMUX_PANE > %[2]s/$i.screen
done`, cases-1, dir, tmux)
	socket := filepath.Join(dir, "socket")
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", socket, "kill-server").Run() }) // it has ended, unless the test fails
	session := exec.Command(tmux, "-S", socket, "-f", "/dev/null", "new-session", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows+1), "bash", "-c", script)
	p, err := startPty(session.Args...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.resize(columns, rows+1); err != nil { // with a line for the status
		t.Fatal(err)
	}
	page := make([]byte, 1<<16)
	for { // until the session ends
		if _, err := p.Read(page); err != nil {
			break
		}
	}
	f := Start(t)
	b := Open(t, f.Console.Link())
	b.Sees("What are you looking for?")
	all, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	// After the last column of a line, before the first one, and within a wide character, terminals differ.
	got := Eval[[]string](b, fmt.Sprintf(`import("/console/screen.js").then(({Screen}) => %s.map(parts => {
		let at = "";
		const s = new Screen(%d, %d, words => at = words);
		for (const p of parts) {
			if (s.full && /[\b\t]|\x1b[^\]]*[^m]$/.test(p) || p === "\b" && s.x === 0 || s.lines[s.y].chars[s.x] === "") return "";
			s.write(p);
		}
		s.write("\x1b[6n");
		return s.lines.map(l => l.chars.join("").trimEnd()).join("\n") + "\n" + at.slice(2, -1);
	}))`, all, columns, rows))
	compared := 0
	for i, text := range written {
		if got[i] == "" {
			continue
		}
		compared++
		screen, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i, ".screen")))
		if err != nil {
			t.Fatal(err)
		}
		at, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(i, ".at")))
		lines := strings.Split(strings.TrimSuffix(string(screen), "\n"), "\n")
		for n := range lines {
			lines[n] = strings.TrimRight(lines[n], " ")
		}
		after := strings.Replace(string(at), fmt.Sprint(";", columns+1), fmt.Sprint(";", columns), 1) // tmux counts a full line so
		if want := strings.Join(lines, "\n") + "\n" + after; got[i] != want {
			t.Errorf("%d: %q:\n%s\n-- want --\n%s", i, strings.Join(text, ""), got[i], want)
		}
	}
	if compared < cases/2 {
		t.Errorf("%d of %d were compared", compared, cases)
	}
}

// Sequences for which terminals differ, or that tmux does not show.
func TestSequences(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	for _, tt := range []struct{ name, written, want string }{
		{"the alternative screen", "main\x1b[?1049hother\x1b[?1049l!", "main!"},
		{"inserting", "acd\x1b[2G\x1b[4hb", "abcd"},
		{"drawing characters", "\x1b(0lqk\x1b(Bq", "┌─┐q"},
		{"an address within the region", "\x1b[2;3r\x1b[?6h\x1b[1;2Hx\x1b[9;1Hy", "\n x\ny"},
		{"repetition", "ab\x1b[3b", "abbbb"},
		{"half of a wide character", "日本\x1b[2Gx", " x本"},
		{"a combining character", "e\u0301!", "e\u0301!"},
		{"a hostile title, clipboard and device string", "\x1b]0;t\x07\x1b]52;c;aGk=\x07\x1bP$q\x1b\\ok", "ok"},
		{"huge parameters", "\x1b[99999999999999999999;9;9;9;9999999999mok\x1b[99999999b", "okkkkkkkkk"},
		{"a sequence that never ends", "\x1b[" + strings.Repeat("1;", 5000) + "mok", "ok"},
		{"a line that is too long, without wrapping", "\x1b[?7l0123456789abc", "012345678c"},
		{"a full reset", "gone\x1bcok", "ok"},
		{"a reset after a title that does not end", "\x1b]0;title\x1bcok", "ok"},
		{"a sequence after a string that does not end", "\x1bPbinary\x1b[Hok", "ok"},
		{"a cursor that the other screen saves", "ab\x1b[?1049h\x1b[3;3H\x1b7x\x1b8\x1b[?1049lc", "abc"},
		{"inserting before a wide character", "a中文\x1b[2G\x1b[4hb", "ab中文"},
		{"an emoji", "✅🚀x\x1b[5G!", "✅🚀!"},
	} {
		got := Eval[string](p, fmt.Sprintf(`import("/console/screen.js").then(({Screen}) => {
			const s = new Screen(10, 4);
			s.write(%q);
			return s.lines.map(l => l.chars.join("").trimEnd()).join("\n").trimEnd();
		})`, tt.written))
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A change of the size keeps the line of the cursor on the main screen, also while a program uses the other one.
func TestResize(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	got := Eval[string](p, `import("/console/screen.js").then(({Screen}) => {
		const s = new Screen(10, 6);
		s.write("one\r\ntwo\r\n$ \x1b[?1049h\x1b[5;5Hvi");
		s.resize(8, 3);
		s.resize(12, 6);
		s.write("\x1b[?1049lls");
		return s.lines.map(l => l.chars.join("").trimEnd()).join("|");
	})`)
	if want := "one|two|$ ls|||"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// output returns random output of a program, in parts.
func output(random *rand.Rand) (written []string) {
	n := func(most int) string { return fmt.Sprint(1 + random.IntN(most)) }
	parts := []func() string{
		func() string { return strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(50)) },
		func() string { return "word " },
		func() string { return "\r\n" },
		func() string { return "\r" },
		func() string { return "\n" },
		func() string { return "\b" },
		func() string { return "\t" },
		func() string { return "\x1b[" + n(14) + ";" + n(45) + "H" },
		func() string { return "\x1b[" + n(5) + string("ABCDEFGd"[random.IntN(8)]) },
		func() string { return "\x1b[" + n(3) + string("ST"[random.IntN(2)]) },
		func() string { return "\x1bM" },
		func() string { return "\x1bD" },
		func() string { return "\x1b7" },
		func() string { return "\x1b8" },
		func() string { return "\x1b[?7" + string("hl"[random.IntN(2)]) },
		func() string { return "\x1b[" + n(107) + "m" },
		func() string { return "\x1b[38;5;" + n(255) + ";1m" },
		func() string { return "\x1b]0;title\x07" },
	}
	if random.IntN(2) == 0 { // tmux leaves halves of wide characters
		parts = append(parts, func() string { return "日本語" })
	} else {
		parts = append(parts, func() string { return "\x1b[" + fmt.Sprint(random.IntN(3)) + string("JK"[random.IntN(2)]) },
			func() string { return "\x1b[" + n(5) + string("XP@"[random.IntN(3)]) })
	}
	if random.IntN(2) == 0 { // tmux also inserts lines outside of a region
		parts = append(parts, func() string { return "\x1b[" + n(3) + string("LM"[random.IntN(2)]) })
	} else {
		parts = append(parts, func() string { top := 1 + random.IntN(8); return fmt.Sprintf("\x1b[%d;%dr", top, top+1+random.IntN(4)) }, func() string { return "\x1b[r" })
	}
	for range 5 + random.IntN(30) {
		written = append(written, parts[random.IntN(len(parts))]())
	}
	return written
}

// terminals serves requests for a terminal, and reports whether a request is one.
func terminals(c *websocket.Conn) bool {
	query := c.Request().URL.Query()
	if query.Get("tty") == "" {
		return false
	}
	if err := serveTerminal(c, query["command"]); err != nil {
		_ = websocket.Message.Send(c, append([]byte{3}, fmt.Sprintf(`{"status":"Failure","message":%q}`, err)...))
	}
	return true
}
