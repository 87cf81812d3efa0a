// Package traces checks the traces that the program exports, with a collector that decodes the published messages
// of OTLP.
//
// The requests of testdata/spans.txt have the same spans from a kube-apiserver:
//
//	go test . -run TestSpans -reference
//	go test . -run TestSpans -reference -update
package traces
