// Command agent is the published agent of Konnectivity, in another network than everybody
// else's: it alone knows the names that end with ".only-the-agent.test", which are this machine. What
// a server reaches by such a name, it reaches through the agent.
//
// The network is the process itself, so that it takes no rights and no namespaces to have one.
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

// domain is what only the agent knows.
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

// answer is a name server on a connection, as it is over TCP: each message after its length.
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

// reply says that a name is this machine, or that there is none.
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
