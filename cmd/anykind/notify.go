package main

import (
	"fmt"
	"net"
	"os"
)

// States of sd_notify(3).
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

// notify sends a state to the service manager that started the program, such as systemd. It does
// nothing without NOTIFY_SOCKET.
func notify(state string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	// A name that begins with @ is an abstract socket, for net as for systemd.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("sending %s to the service manager at NOTIFY_SOCKET: %w", state, err)
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}
