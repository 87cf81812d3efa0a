package bounded

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A cache has at most its maximum, and always the last used half.
func TestBound(t *testing.T) {
	c := New[int, int](100)
	c.Add(-1, -1)
	for i := range 1000 {
		c.Add(i, 2*i)
		if v, ok := c.Get(-1); !ok || v != -1 {
			t.Fatalf("after %d: a value that is read every time was evicted", i)
		}
		if c.Len() > 100 {
			t.Fatalf("after %d: there are %d values", i, c.Len())
		}
	}
	for i := 1000 - 49; i < 1000; i++ {
		if v, ok := c.Get(i); !ok || v != 2*i {
			t.Errorf("%d was evicted", i)
		}
	}
	if _, ok := c.Get(1); ok {
		t.Error("an old value was not evicted")
	}
}

func TestReplace(t *testing.T) {
	c := New[string, int](4)
	c.Add("a", 1)
	c.Add("b", 1)
	c.Add("c", 1) // a is in the older generation
	c.Add("a", 2)
	if v, _ := c.Get("a"); v != 2 {
		t.Errorf("a is %d, want 2", v)
	}
	c.Clear()
	if _, ok := c.Get("a"); ok || c.Len() != 0 {
		t.Errorf("there are %d values after Clear", c.Len())
	}
}

// A value expires after its TTL, also one that is read all the time. Expired values are dropped by later
// ones.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[int, int](100)
		c.AddFor(time.Minute, 1, 1)
		c.AddFor(time.Hour, 2, 2)
		c.Add(3, 3)
		c.AddFor(0, 4, 4)
		if _, ok := c.Get(4); ok {
			t.Error("a value with the TTL 0 was added")
		}
		for range 59 {
			time.Sleep(time.Second)
			if _, ok := c.Get(1); !ok {
				t.Fatal("a value expired too early")
			}
		}
		time.Sleep(time.Second)
		if _, ok := c.Get(1); ok {
			t.Error("a value did not expire")
		}
		if _, ok := c.Get(2); !ok {
			t.Error("a value expired by the TTL of another")
		}
		if _, ok := c.Get(3); !ok {
			t.Error("a value without a TTL expired")
		}

		d := New[int, int](100)
		for i := range 40 {
			d.AddFor(time.Minute, i, i)
		}
		time.Sleep(time.Minute)
		d.AddFor(time.Minute, 100, 0)
		time.Sleep(time.Minute)
		d.AddFor(time.Minute, 101, 0)
		if d.Len() != 2 {
			t.Errorf("there are %d values, want the last two", d.Len())
		}
	})
}

// Reads, writes and Clear may run at the same time.
func TestConcurrent(t *testing.T) {
	c := New[int, int](8)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2000 {
				key := i * 7 % 16
				if v, ok := c.Get(key); ok && v != -key {
					t.Errorf("%d has the value %d", key, v)
				}
				if i%2 == 0 {
					c.Add(key, -key)
				} else {
					c.AddFor(time.Hour, key, -key)
				}
				if i%500 == 0 {
					c.Clear()
				}
			}
		})
	}
	all.Wait()
	if c.Len() > 8 {
		t.Errorf("there are %d values", c.Len())
	}
}

func BenchmarkGet(b *testing.B) {
	c := New[[32]byte, *int](8192)
	for i := range 4096 {
		c.AddFor(time.Hour, [32]byte{byte(i), byte(i >> 8)}, &i)
	}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			if _, ok := c.Get([32]byte{byte(i), byte(i >> 8 & 15)}); !ok {
				b.Error("a value is missing")
			}
		}
	})
}
