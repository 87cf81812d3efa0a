//go:build unix

package trouble

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

var asJSON = []wire.Field{{Name: "Content-Type", Value: "application/json"}}

// A process is suspended for some seconds during writes and a watch, and then continues: acknowledged
// writes are stored, and the watch has each once, in order.
func TestPausedProcess(t *testing.T) {
	p := start(t)
	for i, c := range clients(p) {
		t.Run(names[i], func(t *testing.T) {
			pause(t, c, []int{p.TheirPID, p.OurPID}[i])
		})
	}
}

func pause(t *testing.T, c *wire.Client, pid int) {
	watch := c.Do(t.Context(), wire.Step{Method: "GET", Path: collection + "?watch=true&labelSelector=paused", Watch: true})
	if watch.Stream == nil {
		t.Fatalf("no watch: %d %s", watch.Code, watch.Failed)
	}
	defer watch.Stream.Close()
	const writes, each = 4, 150
	taken := make(chan string, writes*each)
	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-stopped
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Error(err)
		}
		<-time.After(3 * time.Second)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	ended := make(chan struct{}, writes)
	for w := range writes {
		go func() {
			defer func() { ended <- struct{}{} }()
			for n := range each {
				if w == 0 && n == each/3 {
					close(stopped)
				}
				name := fmt.Sprintf("paused-%d-%d", w, n)
				a := c.Do(t.Context(), wire.Step{Method: "POST", Path: collection, Header: asJSON,
					Body: fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"paused":"yes"}}}`, name)})
				if a.Code == http.StatusCreated {
					taken <- name
				} else {
					t.Errorf("%s: %d %s %s", name, a.Code, a.Failed, a.Body)
				}
			}
		}()
	}
	for range writes {
		<-ended
	}
	<-done
	close(taken)
	var want []string
	for name := range taken {
		want = append(want, name)
	}
	eventually(t, "the watch says everything", 20*time.Second, func() bool { n, _ := watch.Stream.Len(); return n >= len(want) })
	var got []string
	var last int64
	for _, frame := range watch.Stream.Frames() {
		var event struct {
			Type   string
			Object struct {
				Metadata struct {
					Name            string
					ResourceVersion int64 `json:",string"`
				}
			}
		}
		if err := json.Unmarshal(frame, &event); err != nil {
			t.Fatal(err)
		}
		if event.Type != "ADDED" || event.Object.Metadata.ResourceVersion <= last {
			t.Errorf("%s of %s at revision %d, after %d", event.Type, event.Object.Metadata.Name, event.Object.Metadata.ResourceVersion, last)
		}
		last = event.Object.Metadata.ResourceVersion
		got = append(got, event.Object.Metadata.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d writes were taken, and the watch told of %d", len(want), len(got))
	}
}
