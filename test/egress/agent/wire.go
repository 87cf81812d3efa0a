package main

import (
	"encoding/binary"
	"io"

	"golang.org/x/net/dns/dnsmessage"
)

func read(r io.Reader) (m dnsmessage.Message, err error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return m, err
	}
	data := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(r, data); err != nil {
		return m, err
	}
	return m, m.Unpack(data)
}

func write(w io.Writer, m dnsmessage.Message) error {
	data, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...))
	return err
}
