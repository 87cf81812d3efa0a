package object

import (
	"errors"
	"strconv"
)

// AppendMetadata appends the metadata as a client sees it, with its
// resourceVersion, and nothing else of the object.
func (e *Encoded) AppendMetadata(dst []byte) []byte {
	from, to := e.metadata()
	dst = append(dst, e.JSON[from:e.version.at.from]...)
	dst = append(dst, e.version.before...)
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, e.Revision, 10)
	dst = append(dst, '"')
	dst = append(dst, e.version.after...)
	return append(dst, e.JSON[e.version.at.to:to]...)
}

// metadata finds the metadata that Scan has put the version in.
func (e *Encoded) metadata() (from, to int) {
	s := scanner{data: e.JSON}
	// What Scan took is well-formed; the error only ends the search.
	_ = s.object(func(key string) error {
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		if key == "metadata" && start <= int(e.version.at.from) && int(e.version.at.to) <= s.pos {
			from, to = start, s.pos
			return errFound
		}
		return nil
	})
	return from, to
}

var errFound = errors.New("found")
