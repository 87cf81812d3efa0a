package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pairs runs a test with answers and the other end of its connection.
func pairs(t *testing.T, watches int32, test func(t *testing.T, p *answers, sent *counted, client net.Conn)) {
	t.Helper()
	sending(t, watches, func(t *testing.T, o *output, sent *counted, client net.Conn) {
		p := newAnswers(o)
		test(t, p, sent, client)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(lateLook)
	})
}

func (p *answers) say(t *testing.T, text string) {
	t.Helper()
	if n, err := io.WriteString(p, text); n != len(text) || err != nil {
		t.Errorf("writing %.20q: %d, %v", text, n, err)
	}
}

// The head of an expected answer is sent with the body.
func TestPair(t *testing.T) {
	for _, watches := range []int32{0, 2} {
		pairs(t, watches, func(t *testing.T, p *answers, sent *counted, client net.Conn) {
			for range 3 {
				p.expect()
				p.say(t, "head ")
				go p.say(t, "body")
				expect(t, client, "head body")
				synctest.Wait()
			}
			if got := fmt.Sprint(sent.pieces); got != "[head body head body head body]" || len(sent.pieces) != 3 {
				t.Errorf("sent %q", sent.pieces)
			}
		})
	}
}

// Other heads are not held back.
func TestNoPair(t *testing.T) {
	pairs(t, 0, func(t *testing.T, p *answers, _ *counted, client net.Conn) {
		at := func(want string) {
			t.Helper()
			began := time.Now()
			go p.say(t, want)
			if expect(t, client, want); time.Since(began) != 0 {
				t.Errorf("%.10q waited for %v", want, time.Since(began))
			}
			synctest.Wait()
		}
		at("nothing is expected")
		p.expect()
		at(strings.Repeat("long", maxHead))
		time.Sleep(headWait)
		at("too late")
	})
}

// A head without a body is sent alone, before all later output.
func TestHeadAlone(t *testing.T) {
	pairs(t, 0, func(t *testing.T, p *answers, sent *counted, client net.Conn) {
		p.expect()
		p.say(t, "head ")
		time.Sleep(lateLook)
		synctest.Wait() // the write blocks: the test does not read yet
		done := make(chan bool)
		go func() { p.say(t, "body"); close(done) }()
		synctest.Wait()
		expect(t, client, "head body")
		<-done
		if len(sent.pieces) != 2 {
			t.Errorf("sent %q", sent.pieces)
		}
	})
}

// Checks continue while there is a head: one that is too young, and a later one.
func TestHeadsAlone(t *testing.T) {
	pairs(t, 0, func(t *testing.T, p *answers, _ *counted, client net.Conn) {
		began := time.Now()
		late := func(waited time.Duration) {
			t.Helper()
			p.expect()
			p.say(t, "head")
			expect(t, client, "head")
			if got := time.Since(began); got != waited {
				t.Errorf("the head was sent after %v, want %v", got, waited)
			}
			synctest.Wait()
		}
		late(lateLook)
		p.expect()
		p.say(t, "head ")
		go p.say(t, "body")
		expect(t, client, "head body")
		time.Sleep(lateLook - headWait/2)
		late(3 * lateLook) // too young halfway
		if p.all.late.some != nil || p.known {
			t.Error("something is looked for")
		}
		time.Sleep(lateLook)
		late(5 * lateLook)
	})
}

// A failure to send the head is reported to the writer of the body.
func TestPairFails(t *testing.T) {
	pairs(t, 0, func(t *testing.T, p *answers, _ *counted, client net.Conn) {
		p.expect()
		p.say(t, "head ")
		client.Close()
		if n, err := p.Write([]byte("body")); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%d, %v", n, err)
		}
	})
}
