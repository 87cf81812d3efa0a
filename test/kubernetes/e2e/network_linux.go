package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// enter runs this program once more, with additional environment variables, in a network namespace of
// its own, in which all pod addresses are of this machine. It needs no privileges: the creator of a
// user namespace has all capabilities in it.
func enter(env ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return cmd.Run()
}

// connect adds the pod addresses to the loopback interface.
func connect() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	set := func(name string, what uint, value func(*unix.Ifreq) error) error {
		request, err := unix.NewIfreq(name)
		if err == nil {
			err = value(request)
		}
		if err == nil {
			err = unix.IoctlIfreq(socket, what, request)
		}
		if err != nil {
			return fmt.Errorf("setting the addresses of %s: %w", name, err)
		}
		return nil
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING); return nil }
	first, mask := addresses.Addr().Next().AsSlice(), []byte{255, 255, 0, 0}
	for _, s := range []struct {
		name  string
		what  uint
		value func(*unix.Ifreq) error
	}{
		{"lo", unix.SIOCSIFFLAGS, up},
		{"lo:pods", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(first) }},
		{"lo:pods", unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) }},
	} {
		if err := set(s.name, s.what, s.value); err != nil {
			return err
		}
	}
	return nil
}
