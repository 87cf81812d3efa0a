// Command agent is the published agent of Konnectivity, in a network of its own: it alone resolves the
// names that end with ".only-the-agent.test", to this machine. A server that reaches such a name
// reaches it through the agent.
//
// The network is the process itself, so it needs no privileges and no namespaces.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	"k8s.io/klog/v2"
	"sigs.k8s.io/apiserver-network-proxy/cmd/agent/app"
	"sigs.k8s.io/apiserver-network-proxy/cmd/agent/app/options"
)

// domain is the suffix of the names that only the agent resolves.
const domain = ".only-the-agent.test."

func main() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go answer(there)
		return here, nil
	}}
	o := options.NewGrpcProxyAgentOptions()
	command := app.NewAgentCommand(&app.Agent{}, o)
	command.Flags().AddFlagSet(o.Flags())
	local := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	klog.InitFlags(local)
	command.Flags().AddGoFlagSet(local)
	if err := command.Execute(); err != nil {
		klog.ErrorS(err, "the agent ended")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// answer serves DNS on a connection in the format of TCP: each message after its length.
func answer(conn net.Conn) {
	defer conn.Close()
	for {
		asked, err := read(conn)
		if err != nil {
			return // the resolver has closed its end
		}
		if err := write(conn, reply(asked)); err != nil {
			return
		}
	}
}

// reply resolves a name to this machine, or responds that it does not exist.
func reply(asked dnsmessage.Message) dnsmessage.Message {
	r := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: asked.ID, Response: true, RecursionDesired: true, RecursionAvailable: true, RCode: dnsmessage.RCodeNameError},
		Questions: asked.Questions,
	}
	for _, q := range asked.Questions {
		if !strings.HasSuffix(q.Name.String(), domain) {
			continue
		}
		r.RCode = dnsmessage.RCodeSuccess
		if q.Type == dnsmessage.TypeA {
			r.Answers = append(r.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			})
		}
	}
	return r
}
