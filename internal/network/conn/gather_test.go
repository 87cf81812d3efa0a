package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A counted connection records each call of Write.
type counted struct {
	net.Conn
	pieces []string
}

func (c *counted) Write(p []byte) (int, error) {
	c.pieces = append(c.pieces, string(p))
	return c.Conn.Write(p)
}

// sending runs a test with an output with that many watches, and the other end of its connection,
// which only the test reads.
func sending(t *testing.T, watches int32, test func(t *testing.T, o *output, sent *counted, client net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, ours := net.Pipe()
		sent := &counted{Conn: ours}
		o := newOutput(sent, &outputs{})
		o.watches.Store(watches)
		test(t, o, sent, client)
		client.Close()
		o.all.sending.Wait()
		if _, err := ours.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection is left open: %v", err)
		}
	})
}

func (o *output) say(t *testing.T, text string) {
	t.Helper()
	if n, err := io.WriteString(o, text); n != len(text) || err != nil {
		t.Errorf("writing %.20q: %d, %v", text, n, err)
	}
}

// expect reads the expected bytes.
func expect(t *testing.T, client net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != want {
		t.Errorf("%.20q came, not %.20q: %v", got, want, err)
	}
}

// Output during a send is buffered, and then sent in one call.
func TestGathered(t *testing.T) {
	sending(t, 2, func(t *testing.T, o *output, sent *counted, client net.Conn) {
		o.say(t, "a")
		synctest.Wait() // the send blocks
		o.say(t, "b")
		o.say(t, "c")
		o.say(t, "d")
		expect(t, client, "abcd")
		if got := fmt.Sprint(sent.pieces); got != "[a bcd]" {
			t.Errorf("sent %s", got)
		}
		synctest.Wait()
		o.say(t, "e") // after a pause
		expect(t, client, "e")
		if o.Close(); len(sent.pieces) != 3 {
			t.Errorf("sent %q", sent.pieces)
		}
	})
}

// Only output of watches is buffered; other writers send directly.
func TestNotGathered(t *testing.T) {
	sending(t, 1, func(t *testing.T, o *output, _ *counted, client net.Conn) {
		done := make(chan bool)
		go func() { o.say(t, "answer"); close(done) }()
		synctest.Wait()
		select {
		case <-done:
			t.Error("the writer did not wait until it was taken")
		default:
		}
		expect(t, client, "answer")
		<-done
		o.Close()
	})
}

// A client that does not read blocks its writer once the buffer is full, until the deadline. A
// deadline without a waiting writer has no effect.
func TestGatheredForStuckClient(t *testing.T) {
	sending(t, 2, func(t *testing.T, o *output, _ *counted, client net.Conn) {
		defer o.Close()
		o.say(t, "first")
		for _, d := range []time.Time{time.Now().Add(-time.Second), {}} {
			if err := o.SetWriteDeadline(d); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		expect(t, client, "first")

		if err := o.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		began, written := time.Now(), 0
		for {
			n, err := o.Write(make([]byte, 10_000))
			if written += n; err == nil {
				continue
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Minute {
				t.Errorf("writing ended after %v: %v", time.Since(began), err)
			}
			break
		}
		if written > 2*maxGathered {
			t.Errorf("%d bytes are held", written)
		}
		if _, err := o.Write([]byte("more")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after a part was not sent: %v", err)
		}
	})
}

// Setting a deadline unblocks a waiting writer.
func TestGatheredCutOff(t *testing.T) {
	sending(t, 2, func(t *testing.T, o *output, _ *counted, _ net.Conn) {
		defer o.Close()
		ended := make(chan error)
		go func() {
			_, err := o.Write(make([]byte, 3*maxGathered))
			ended <- err
		}()
		synctest.Wait()
		if err := o.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A closing connection sends its buffer if the client reads it in time. It reads nothing any
// more.
func TestGatheredAtClose(t *testing.T) {
	for _, takes := range []bool{true, false} {
		sending(t, 2, func(t *testing.T, o *output, _ *counted, client net.Conn) {
			long := strings.Repeat("x", maxGathered)
			o.say(t, "last ")
			synctest.Wait()
			o.say(t, long)
			read := make(chan error)
			go func() { _, err := o.Read(make([]byte, 1)); read <- err }()
			// As TLS does.
			if err := errors.Join(o.SetWriteDeadline(time.Now()), o.Close()); err != nil {
				t.Error(err)
			}
			if err := <-read; err == nil {
				t.Error("something came in")
			}
			if _, err := o.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("writing to a closed connection: %v", err)
			}
			if takes {
				expect(t, client, "last "+long)
			}
			began := time.Now()
			o.all.sending.Wait()
			if took := time.Since(began); (took == parting) == takes {
				t.Errorf("closed after %v", took)
			}
		})
	}
}

// After Close no send starts.
func TestGatheredAfterClose(t *testing.T) {
	sending(t, 2, func(t *testing.T, o *output, sent *counted, _ net.Conn) {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if _, err := o.Write([]byte("more")); !errors.Is(err, net.ErrClosed) || o.sending {
			t.Errorf("writing to a closed connection: %v", err)
		}
		if err := o.Close(); !errors.Is(err, net.ErrClosed) || len(sent.pieces) != 0 {
			t.Errorf("closing it again: %v", err)
		}
	})
}
