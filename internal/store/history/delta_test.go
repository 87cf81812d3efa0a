package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// A difference gives its value back, for random pairs of values.
func TestDelta(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	value := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + random.IntN(3))
		}
		return b
	}
	for range 20000 {
		base := value(random.IntN(200))
		other := bytes.Clone(base)
		for range random.IntN(5) {
			at := random.IntN(len(other) + 1)
			end := at + random.IntN(len(other)-at+1)
			other = bytes.Join([][]byte{other[:at], value(random.IntN(30)), other[end:]}, nil)
		}
		got, err := applyDelta(base, appendDelta(nil, base, other))
		if err != nil || !bytes.Equal(got, other) {
			t.Fatalf("from %q to %q: %q, %v", base, other, got, err)
		}
	}
}

// A small change of a large object has a small difference, also if it is in several places.
func TestDeltaIsSmall(t *testing.T) {
	object := map[string]any{}
	for i := range 100 {
		object[fmt.Sprint("field", i)] = fmt.Sprint("the value of field ", i*i)
	}
	base, _ := json.Marshal(object)
	for _, i := range []int{10, 50, 90} {
		object[fmt.Sprint("field", i)] = "another"
	}
	delete(object, "field70")
	other, _ := json.Marshal(object)
	if n := len(appendDelta(nil, base, other)); n > 110 {
		t.Errorf("the difference of four fields has %d bytes, of %d", n, len(other))
	}
}

// Damaged differences and runs are errors, and never take much memory.
func TestDamagedDelta(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	base := bytes.Repeat([]byte("0123456789abcdef"), 20)
	r := &run{}
	for i := range 5 {
		r.add(version{revision: int64(i + 1), time: int64(1000 * i), note: []byte("note"), data: append(bytes.Clone(base), byte('0'+i))})
	}
	whole := r.encode()
	for range 20000 {
		damaged := bytes.Clone(whole)
		damaged[random.IntN(len(damaged))] = byte(random.IntN(256))
		back, err := decodeRun(damaged[:len(damaged)-random.IntN(2)])
		if err != nil {
			continue
		}
		for i := range back.versions {
			if back.whole() >= 0 && i >= back.whole() {
				_, _ = back.value(i)
			}
		}
	}
	_, err := applyDelta(base, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x00, 0x05})
	if err == nil {
		t.Error("a difference of gigabytes is no error")
	}
}
