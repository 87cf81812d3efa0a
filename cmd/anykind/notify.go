package main

import (
	"fmt"
	"net"
	"os"
)

// What a supervisor is told, in the words of sd_notify(3).
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

// notify tells the supervisor that started the program, such as systemd, how it is. It does
// nothing if none wants to know.
func notify(state string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	// A name that begins with @ is one without a file, for net as for systemd.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("telling the supervisor at NOTIFY_SOCKET %s: %w", state, err)
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}
