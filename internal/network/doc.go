// Package network is the wing of connections to other programs. It has no code of its own.
//
// egress is the only dialer, with a tunnel or a proxy where the configuration names one. webhook,
// review, kubelet and cluster are clients of one kind of server each; proxy forwards requests to
// a server; endpoint resolves a Service to addresses; mirror copies the namespaces of a cluster.
// otlp exports traces. conn gathers small writes of a connection. pki creates, stores and renews certificates;
// kubeconfig and configfile read configuration files.
//
// The wing does not know how objects are written. It imports the wings object and store.
//
// Begin with egress/egress.go.
package network
