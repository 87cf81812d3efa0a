package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// A Repeated is a load of clients that all send one request again and again.
type Repeated struct {
	Clients int
	Request Request
}

// A Crowd is a load that runs in a process of its own.
type Crowd struct {
	process *exec.Cmd
	stop    io.Closer
	results *json.Decoder
}

// apartArgument is the argument of a process that Apart starts.
const apartArgument = "apart"

// An order is the input of a process that Apart starts.
type order struct {
	Repeated
	Address, Token string
	Roots          string // a file
}

// Apart starts a load in a process of its own, and returns once its connections are open. The process has the least
// priority, so that it takes no processor from the server, as if it ran elsewhere. The program must begin with IfApart.
func Apart(ctx context.Context, t Target, roots string, r Repeated) (*Crowd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(order{r, t.Address, t.Token, roots})
	if err != nil {
		return nil, err
	}
	c := &Crowd{process: exec.CommandContext(ctx, "nice", "-n", "19", program, apartArgument)}
	c.process.Stderr = os.Stderr
	stdin, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.stop = stdin
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.results = json.NewDecoder(stdout)
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	if _, err := stdin.Write(append(input, '\n')); err != nil {
		return nil, errors.Join(err, c.process.Wait())
	}
	var open bool
	if err := c.results.Decode(&open); err != nil {
		return nil, fmt.Errorf("the load did not begin: %w", errors.Join(err, c.process.Wait()))
	}
	return c, nil
}

// End ends the load, and returns its result without latencies.
func (c *Crowd) End() (*Result, error) {
	err := c.stop.Close()
	var r Result
	err = errors.Join(err, c.results.Decode(&r), c.process.Wait())
	return &r, err
}

// IfApart is the whole program of a process that Apart started. Otherwise it returns at once.
func IfApart() {
	if len(os.Args) != 2 || os.Args[1] != apartArgument {
		return
	}
	if err := apart(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func apart(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	pem, err := os.ReadFile(o.Roots)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	results := json.NewEncoder(out)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, lines) // the end of the input, or its failure, is the end of the load
		stop()
	}()
	got, err := Plan{
		Clients: o.Clients, For: 24 * time.Hour, Begin: func() error { return results.Encode(true) },
		Make: func(_ int, r *Request) { *r = o.Request },
	}.Run(ctx, Target{o.Address, &tls.Config{RootCAs: roots}, o.Token})
	if got == nil {
		return err
	}
	got.Latencies = nil
	return results.Encode(got)
}
