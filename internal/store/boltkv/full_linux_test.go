package boltkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
)

// TestFullDisk fills a small file system of its own: writes that do not fit fail and change nothing,
// reads and deletions still succeed, and so do writes once there is space, without a restart.
func TestFullDisk(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), fullDirVariable+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := child.CombinedOutput()
	if bytes.Contains(out, []byte("cannot mount")) || (err != nil && child.ProcessState == nil) {
		t.Skipf("no file system to fill: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// fullChild is in a mount namespace of its own.
func fullChild(dir string) {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=12m"); err != nil {
		fmt.Println("cannot mount:", err)
		os.Exit(0)
	}
	if err := fillDisk(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func fillDisk(dir string) error {
	ctx := context.Background()
	s, err := boltkv.Open(dir+"/data", boltkv.Options{})
	if err != nil {
		return err
	}
	value := bytes.Repeat([]byte("v"), 5000)
	at := map[string]int64{}
	fill := func(round string) (int, error) {
		for i := 0; ; i++ {
			key := fmt.Sprintf("/%s/%d", round, i)
			r, err := s.Commit(ctx, kv.Write{Key: key, Value: value})
			if errors.Is(err, kv.ErrFull) {
				return i, nil
			}
			if err != nil || i > 10000 {
				return i, fmt.Errorf("write %d of round %s: %w", i, round, err)
			}
			at[key] = r
		}
	}
	n, err := fill("first")
	if err != nil {
		return err
	}
	// Another file takes the rest of the space, to the last byte.
	hog, err := os.Create(dir + "/hog")
	if err != nil {
		return err
	}
	for err == nil {
		_, err = hog.Write(make([]byte, 4096))
	}
	if err := checkContents(ctx, s, at); err != nil {
		return err
	}
	newest, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	deleted := 0
	for key, r := range at {
		if !strings.HasSuffix(key, "7") {
			d, err := s.Commit(ctx, kv.Write{Key: key, Expect: r})
			if err != nil {
				return fmt.Errorf("deletion %d on a full disk: %w", deleted, err)
			}
			delete(at, key)
			newest = d
			deleted++
		}
	}
	// Deleted values are still in the history. Compaction frees them.
	if err := s.Compact(ctx, newest); err != nil {
		return fmt.Errorf("compacting on a full disk: %w", err)
	}
	m := 0
	for try := 0; m < n/2; try++ {
		more, err := fill(fmt.Sprint("second", try))
		if err != nil {
			return err
		}
		if m += more; try > 10000 {
			return fmt.Errorf("of %d writes, %d fit again after %d deletions", n, m, deleted)
		}
	}
	// And a larger disk is noticed.
	if err := errors.Join(hog.Close(), os.Remove(hog.Name())); err != nil {
		return err
	}
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=24m"); err != nil {
		return err
	}
	k, err := fill("third")
	if err != nil {
		return err
	}
	if k < n/4 {
		return fmt.Errorf("%d writes fit after the disk grew", k)
	}
	if err := errors.Join(checkContents(ctx, s, at), s.Close()); err != nil {
		return err
	}
	if s, err = boltkv.Open(dir+"/data", boltkv.Options{}); err != nil {
		return err
	}
	fmt.Printf("%d writes filled the disk, %d deletions made room for %d, growing it for %d\n", n, deleted, m, k)
	return errors.Join(checkContents(ctx, s, at), s.Close())
}

func checkContents(ctx context.Context, s *boltkv.Store, at map[string]int64) error {
	page, err := s.List(ctx, kv.Range{})
	if err != nil {
		return err
	}
	if len(page.Records) != len(at) {
		return fmt.Errorf("there are %d records, should be %d", len(page.Records), len(at))
	}
	for _, r := range page.Records {
		if at[r.Key] != r.Revision {
			return fmt.Errorf("%s is at %d, should be at %d", r.Key, r.Revision, at[r.Key])
		}
	}
	return nil
}
