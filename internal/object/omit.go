package object

// Omit appends the JSON of a stored object to dst without the fields for which omit returns true.
// omit is called once for every field outside omitted ones, with the path of keys; elements of an
// array share the path of the array. The path is valid only during the call.
//
// It is for readers of a small part of a large object: omitted parts are skipped without parsing.
func Omit(dst, data []byte, omit func(path []string) bool) ([]byte, error) {
	o := omitter{scanner: scanner{data: data}, dst: dst, omit: omit}
	if err := o.value(); err != nil {
		return dst, err
	}
	return o.dst, nil
}

type omitter struct {
	scanner
	dst  []byte
	path []string
	omit func(path []string) bool
}

func (o *omitter) value() error {
	switch {
	case o.next("{"):
		return o.fields()
	case o.next("["):
		return o.elements()
	default:
		start := o.pos
		err := o.skip()
		o.dst = append(o.dst, o.data[start:o.pos]...)
		return err
	}
}

func (o *omitter) fields() error {
	o.dst = append(o.dst, '{')
	first := true
	err := o.object(func(key string) error {
		o.path = append(o.path, key)
		defer func() { o.path = o.path[:len(o.path)-1] }()
		if o.omit(o.path) {
			return o.skip()
		}
		if !first {
			o.dst = append(o.dst, ',')
		}
		first = false
		o.dst = append(o.dst, o.data[o.keyStart:o.pos]...)
		return o.value()
	})
	o.dst = append(o.dst, '}')
	return err
}

func (o *omitter) elements() error {
	o.pos++
	o.dst = append(o.dst, '[')
	for first := true; !o.next("]"); first = false {
		if !first {
			if err := o.expect(','); err != nil {
				return err
			}
			o.dst = append(o.dst, ',')
		}
		if err := o.value(); err != nil {
			return err
		}
	}
	o.pos++
	o.dst = append(o.dst, ']')
	return nil
}

// Field returns the JSON of a top-level field of a stored object, or nil. It is a subslice of
// data.
func Field(data []byte, field string) (json []byte, err error) {
	s := scanner{data: data}
	err = s.object(func(key string) error {
		s.space()
		start := s.pos
		if err := s.skip(); err != nil {
			return err
		}
		if key == field {
			json = data[start:s.pos]
		}
		return nil
	})
	return json, err
}

// Each calls visit with the JSON of every value at a path of keys, in an object or an array:
// elements of an array share its path. The JSON is a subslice of data.
func Each(data []byte, path []string, visit func(json []byte) error) error {
	s := scanner{data: data}
	return s.each(path, visit)
}

func (s *scanner) each(path []string, visit func(json []byte) error) error {
	s.space()
	start := s.pos
	switch {
	case s.next("["):
		s.pos++
		for first := true; !s.next("]"); first = false {
			if !first {
				if err := s.expect(','); err != nil {
					return err
				}
			}
			if err := s.each(path, visit); err != nil {
				return err
			}
		}
		s.pos++
		return nil
	case len(path) > 0 && s.next("{"):
		return s.object(func(key string) error {
			if key == path[0] {
				return s.each(path[1:], visit)
			}
			return s.skip()
		})
	}
	if err := s.skip(); err != nil || len(path) > 0 {
		return err
	}
	return visit(s.data[start:s.pos:s.pos])
}
