package object

// AppendMetadata appends the metadata for a client, with its resourceVersion, and nothing else of
// the object.
func (e *Encoded) AppendMetadata(dst []byte) []byte {
	dst = append(dst, e.JSON[e.metadata.from:e.version.from]...)
	dst = e.appendVersion(dst)
	return append(dst, e.JSON[e.version.to:e.metadata.to]...)
}
