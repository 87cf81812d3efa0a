// Package spdytest reads and writes the frames of a SPDY server, for tests of clients.
//
// A test decides which frame follows which: the package knows no streams. It sends no headers, because clients do not read them.
package spdytest

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
)

// The types of frames. Data frames have type 0.
const (
	Data      = 0
	SynStream = 1
	SynReply  = 2
	RstStream = 3
	Settings  = 4
	Ping      = 6
	GoAway    = 7
)

// Fin is the flag of the last frame in a direction.
const Fin = 1

// A Frame is a frame of either side.
type Frame struct {
	Type   uint16
	Flags  byte
	ID     uint32 // of the stream, or of a ping
	Header map[string]string
	Body   []byte // after the id; not of frames with headers
}

// A Server reads and writes frames.
type Server struct {
	in      *bufio.Reader
	out     io.Writer
	block   bytes.Buffer // headers, compressed
	headers io.Reader
}

// New returns a Server over an upgraded connection.
func New(conn io.ReadWriter) *Server { return &Server{in: bufio.NewReader(conn), out: conn} }

// Next reads a frame.
func (s *Server) Next() (f Frame, err error) {
	var head [8]byte
	if _, err = io.ReadFull(s.in, head[:]); err != nil {
		return f, err
	}
	f.Flags, head[4] = head[4], 0
	body := make([]byte, binary.BigEndian.Uint32(head[4:]))
	if _, err = io.ReadFull(s.in, body); err != nil {
		return f, err
	}
	if head[0]>>7 == 0 {
		f.ID, f.Body = binary.BigEndian.Uint32(head[:]), body
		return f, nil
	}
	f.Type, f.ID, f.Body = binary.BigEndian.Uint16(head[2:]), binary.BigEndian.Uint32(body), body[4:]
	if f.Type == SynStream {
		f.Header, err = s.header(f.Body[6:])
		f.Body = nil
	}
	return f, err
}

// header decompresses a header block.
func (s *Server) header(block []byte) (map[string]string, error) {
	s.block.Write(block)
	if s.headers == nil {
		var err error
		if s.headers, err = zlib.NewReader(&s.block); err != nil {
			return nil, err
		}
	}
	var count uint32
	if err := binary.Read(s.headers, binary.BigEndian, &count); err != nil {
		return nil, err
	}
	pairs := map[string]string{}
	for range count {
		var texts [2]string
		for i := range texts {
			var size uint32
			if err := binary.Read(s.headers, binary.BigEndian, &size); err != nil {
				return nil, err
			}
			text := make([]byte, size)
			if _, err := io.ReadFull(s.headers, text); err != nil {
				return nil, err
			}
			texts[i] = string(text)
		}
		pairs[texts[0]] = texts[1]
	}
	return pairs, nil
}

// Send writes a frame without its headers.
func (s *Server) Send(f Frame) error {
	var frame []byte
	body := f.Body
	if f.Type == Data {
		frame = binary.BigEndian.AppendUint32(frame, f.ID)
	} else {
		frame = binary.BigEndian.AppendUint16(frame, 0x8003)
		frame = binary.BigEndian.AppendUint16(frame, f.Type)
		body = append(binary.BigEndian.AppendUint32(nil, f.ID), body...)
	}
	frame = binary.BigEndian.AppendUint32(frame, uint32(f.Flags)<<24|uint32(len(body)))
	_, err := s.out.Write(append(frame, body...))
	return err
}
