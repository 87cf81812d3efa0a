package flags

import "github.com/spf13/pflag"

// addPeers adds the flags of requests between servers that share an etcd.
func (f *Serve) addPeers(flags *pflag.FlagSet) {
	flags.StringVar(&f.peers.CAFile, "peer-ca-file", "",
		"PEM bundle of CAs for the serving certificates of servers with the same etcd; requests for a kind that only another server serves go to that server, with --proxy-client-cert-file")
	flags.StringVar(&f.peers.IP, "peer-advertise-ip", "",
		"IP address of this server for such requests, with --peer-advertise-port (default: --advertise-address and --secure-port)")
	flags.StringVar(&f.peers.Port, "peer-advertise-port", "", "port of this server for such requests, with --peer-advertise-ip")
}
