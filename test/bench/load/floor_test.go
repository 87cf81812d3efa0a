package load

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// BenchmarkFloor measures the minimal cost of delivering an event to 200 watches on 4 connections:
// DATA frames of 1.75 kB, encrypted, sent in pieces of 64 kB and read by this client. An operation is
// one event for one watch. The difference to a server is the server's own cost.
func BenchmarkFloor(b *testing.B) {
	for _, portion := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("%d at once", portion), func(b *testing.B) { benchmarkFloor(b, portion) })
	}
}

func benchmarkFloor(b *testing.B, portion int) {
	const conns = 4
	certificate := httptest.NewTLSServer(nil)
	defer certificate.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", certificate.TLS)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	each := b.N/(conns*portion) + 1 // portions in a connection
	var all sync.WaitGroup
	before := processor(b)
	b.ResetTimer()
	for range conns {
		all.Go(func() {
			c, err := l.Accept()
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			tell(c, portion, each)
		})
		all.Go(func() {
			plain, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Error(err)
				return
			}
			defer plain.Close()
			c := tls.Client(gathered{plain, bufio.NewReaderSize(plain, received)}, &tls.Config{InsecureSkipVerify: true})
			if n := listen(c); n != portion*each {
				b.Errorf("%d events of %d came", n, portion*each)
			}
		})
	}
	all.Wait()
	events := float64(conns * portion * each)
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(processor(b)-before)/events, "cpu-ns/event")
}

// tell sends portions to one stream after the other.
func tell(c net.Conn, portion, times int) {
	body := bytes.Repeat(append(bytes.Repeat([]byte{'x'}, 1749), '\n'), portion)
	out := bufio.NewWriterSize(c, 64<<10)
	defer out.Flush()
	for i := range times {
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 16<<10)
			head := []byte{byte(n >> 16), byte(n >> 8), byte(n), byte(http2.FrameData), 0, 0, 0, 0, 0}
			binary.BigEndian.PutUint32(head[5:], uint32(2*(i%Streams)+1))
			if _, err := out.Write(append(head, rest[:n]...)); err != nil {
				return // the reader reports missing events
			}
			rest = rest[n:]
		}
	}
}

// listen counts events until the connection ends.
func listen(c net.Conn) (events int) {
	framer := http2.NewFramer(io.Discard, bufio.NewReaderSize(c, 64<<10))
	framer.SetReuseFrames()
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return events
		}
		if data, ok := f.(*http2.DataFrame); ok {
			events += bytes.Count(data.Data(), []byte{'\n'})
		}
	}
}

// processor returns the CPU time of this process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
