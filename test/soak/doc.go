// Package soak runs the program as a busy cluster does for long, at many times its speed: the kubelets of 500 nodes renew
// Leases, change the status of nodes and pods, and write Events, which expire. Memory, files, descriptors and goroutines of the
// server stay flat.
//
// An hour at 24 times the speed is a day: go -C test test ./soak -count=1 -v -timeout 2h -duration 1h
package soak
