package intern

import (
	"runtime"
	"sync"
	"testing"
)

type thing struct{ name string }

func TestValuesOfOneKeyAreOne(t *testing.T) {
	var table Table[string, thing]
	one := table.Put("a", &thing{"one"})
	if two := table.Put("a", &thing{"two"}); two != one || table.Get("a") != one {
		t.Errorf("a is %v and %v, want one of them", one, two)
	}
	if other := table.Put("b", &thing{"other"}); other == one || table.Len() != 2 {
		t.Errorf("b is %v, and there are %d, want another and 2", other, table.Len())
	}
	if table.Get("c") != nil {
		t.Error("there is a c")
	}
	runtime.KeepAlive(one)
}

func TestUnusedValuesAreCollected(t *testing.T) {
	var table Table[int, thing]
	kept := table.Put(0, &thing{"kept"})
	for i := range 10 {
		table.Put(i, &thing{})
	}
	for i := 0; table.Len() != 1; i++ {
		if i == 100 {
			t.Fatalf("%d values are kept, want 1", table.Len())
		}
		runtime.GC()
		runtime.Gosched()
	}
	if table.Get(0) != kept || table.Get(1) != nil {
		t.Error("what is used is gone, or what is not used is there")
	}
	runtime.KeepAlive(kept)
}

// A key may be put again while its old value is being dropped.
func TestManyAtOnce(t *testing.T) {
	var table Table[int, thing]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				v := table.Put(i%3, &thing{})
				if table.Get(i%3) != v {
					t.Error("a value was forgotten while it was used")
				}
				if i%100 == 0 {
					runtime.GC()
				}
				runtime.KeepAlive(v)
			}
		})
	}
	wg.Wait()
}

func TestNoTableSharesNothing(t *testing.T) {
	var none *Table[int, thing]
	v := &thing{}
	if none.Put(1, v) != v || none.Get(1) != nil {
		t.Error("nil keeps values")
	}
}
