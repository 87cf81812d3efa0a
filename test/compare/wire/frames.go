package wire

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
)

// frames returns a function that reads the next frame of a stream of a media type.
func frames(mediaType string, body io.Reader) func() ([]byte, error) {
	switch {
	case strings.Contains(mediaType, "protobuf"):
		return func() ([]byte, error) { return counted(body) }
	case strings.Contains(mediaType, "cbor"):
		r := cbor.NewFramer().NewFrameReader(io.NopCloser(body))
		return func() ([]byte, error) { return whole(r) }
	}
	d := json.NewDecoder(body)
	return func() ([]byte, error) {
		var frame json.RawMessage
		err := d.Decode(&frame)
		return frame, err
	}
}

// counted reads a frame with a length prefix.
func counted(from io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > most {
		return nil, io.ErrUnexpectedEOF
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(from, frame)
	return frame, err
}

// whole reads a frame from a reader that reports a short buffer.
func whole(from io.Reader) ([]byte, error) {
	var frame []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		frame = append(frame, buffer[:n]...)
		if err != io.ErrShortBuffer {
			return frame, err
		}
	}
}
