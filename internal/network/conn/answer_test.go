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

// pairs runs a test with a pairing, and the other end of its connection.
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

// A head goes with the body, if an answer is expected.
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

// Only the head of an expected answer waits.
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

// A head whose body does not come is sent alone, before all that comes later.
func TestHeadAlone(t *testing.T) {
	pairs(t, 0, func(t *testing.T, p *answers, sent *counted, client net.Conn) {
		p.expect()
		p.say(t, "head ")
		time.Sleep(lateLook)
		synctest.Wait() // it is being sent, and nobody reads
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

// Looks go on as long as there is something to look for: for a head that is too young, and for one
// that comes later.
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
		late(3 * lateLook) // it was too young in the middle of that
		if p.all.late.some != nil || p.known {
			t.Error("something is looked for")
		}
		time.Sleep(lateLook)
		late(5 * lateLook)
	})
}

// Who writes the body is told that the head was not sent either.
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
