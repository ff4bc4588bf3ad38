package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/state"
)

func open(t *testing.T) (*state.Dir, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a", "state")
	d, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d, path
}

func read(t *testing.T, d *state.Dir, key string) (string, string) {
	t.Helper()
	value, version, err := d.Read(t.Context(), key)
	if err != nil {
		t.Fatalf("Read(%q): %v", key, err)
	}
	return string(value), version
}

func TestReadWrite(t *testing.T) {
	d, path := open(t)
	ctx := t.Context()
	if value, version := read(t, d, "k"); value != "" || version != "" {
		t.Fatalf("missing key: %q, %q", value, version)
	}
	if err := d.Write(ctx, "k", []byte("one"), ""); err != nil {
		t.Fatal(err)
	}
	value, first := read(t, d, "k")
	if value != "one" || first == "" {
		t.Fatalf("got %q, %q", value, first)
	}
	if err := d.Write(ctx, "k", []byte("two"), first); err != nil {
		t.Fatal(err)
	}
	for _, stale := range []string{first, ""} {
		if err := d.Write(ctx, "k", []byte("three"), stale); !errors.Is(err, state.ErrChanged) {
			t.Errorf("Write with version %q: %v, want ErrChanged", stale, err)
		}
		if err := d.Write(ctx, "k", nil, stale); !errors.Is(err, state.ErrChanged) {
			t.Errorf("delete with version %q: %v, want ErrChanged", stale, err)
		}
	}
	if err := d.Write(ctx, "k", []byte{}, state.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if value, version := read(t, d, "k"); value != "" || version == "" {
		t.Errorf("an empty value is a value: %q, %q", value, version)
	}
	if err := d.Write(ctx, "k", nil, state.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(ctx, "k", nil, state.AnyVersion); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
	if _, version := read(t, d, "k"); version != "" {
		t.Errorf("version %q after delete", version)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o700 {
		t.Errorf("folder has mode %v", info.Mode())
	}
}

func TestModes(t *testing.T) {
	d, path := open(t)
	if err := d.Write(t.Context(), "k", []byte("v"), ""); err != nil {
		t.Fatal(err)
	}
	release, err := d.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if info, _ := e.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
	if len(entries) != 3 {
		t.Errorf("files: %v", entries)
	}
}

func TestOpenNarrowsOnlyItsOwnFolder(t *testing.T) {
	for _, test := range []struct {
		name string
		file string
		want os.FileMode
	}{
		{"empty", "", 0o700},
		{"ours", "k-a.state", 0o700},
		{"somebody's home", "notes.txt", 0o755},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := t.TempDir()
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
			if test.file != "" {
				os.WriteFile(filepath.Join(path, test.file), nil, 0o600)
			}
			if _, err := state.Open(path); err != nil {
				t.Fatal(err)
			}
			if info, _ := os.Stat(path); info.Mode().Perm() != test.want {
				t.Errorf("mode %v, want %v", info.Mode().Perm(), test.want)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if _, err := state.Open(file); err == nil {
		t.Error("a file was opened as a folder")
	}
}

func TestOpenRemovesWhatADeadWriterLeft(t *testing.T) {
	path := t.TempDir()
	old, young := filepath.Join(path, "1.tmp"), filepath.Join(path, "2.tmp")
	os.WriteFile(old, []byte("x"), 0o600)
	os.WriteFile(young, []byte("x"), 0o600)
	yesterday := time.Now().Add(-24 * time.Hour)
	os.Chtimes(old, yesterday, yesterday)
	if _, err := state.Open(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("old temporary file is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("a temporary file that may be in use was removed")
	}
}

// Keys carry server names and addresses: each must have a file of its own, inside the folder.
func TestKeys(t *testing.T) {
	d, path := open(t)
	long := strings.Repeat("x", 4000)
	keys := []string{"", ".", "..", "../up", "/etc/passwd", "a/b", "a%2fb", "a\x00b", "GitHub", "github", "guard", "guard.lock",
		"\u00e9", "e\u0301", "a.state", "a.lock", "a", long, long + "y", strings.Repeat("/", 300), strings.Repeat("/", 301)}
	for i, key := range keys {
		if err := d.Write(t.Context(), key, fmt.Append(nil, i), ""); err != nil {
			t.Errorf("Write(%.40q): %v", key, err)
		}
	}
	for i, key := range keys {
		if value, _ := read(t, d, key); value != fmt.Sprint(i) {
			t.Errorf("Read(%.40q) = %q, want %d", key, value, i)
		}
	}
	entries, _ := os.ReadDir(path)
	folded := map[string]bool{}
	for _, e := range entries {
		folded[strings.ToLower(e.Name())] = true
	}
	if want := len(keys) + 1; len(folded) != want {
		t.Errorf("%d files where case does not count, want %d", len(folded), want)
	}
	if outside, _ := os.ReadDir(filepath.Dir(path)); len(outside) != 1 {
		t.Errorf("files outside the folder: %v", outside)
	}
}

func TestUnreadableFileCostsOnlyItself(t *testing.T) {
	d, path := open(t)
	for _, key := range []string{"good", "folder", "link", "pipe", "huge"} {
		if err := d.Write(t.Context(), key, []byte("v"), ""); err != nil {
			t.Fatal(err)
		}
	}
	file := func(key string) string { return filepath.Join(path, "k-"+key+".state") }
	for _, key := range []string{"folder", "link", "pipe"} {
		os.Remove(file(key))
	}
	os.Mkdir(file("folder"), 0o700)
	os.Symlink(file("good"), file("link"))
	if err := syscall.Mkfifo(file("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.Truncate(file("huge"), state.MaxSize+1)
	for _, key := range []string{"folder", "link", "pipe", "huge"} {
		if value, _, err := d.Read(t.Context(), key); err == nil {
			t.Errorf("%s: read %d bytes, want an error", key, len(value))
		}
	}
	for _, key := range []string{"link", "pipe", "huge"} {
		if err := d.Write(t.Context(), key, []byte("new"), state.AnyVersion); err != nil {
			t.Errorf("%s: cannot be replaced: %v", key, err)
		}
	}
	if value, _ := read(t, d, "good"); value != "v" {
		t.Errorf("good = %q", value)
	}
	if _, err := state.Open(path); err != nil {
		t.Errorf("Open: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	d, _ := open(t)
	if err := d.Write(t.Context(), "k", make([]byte, state.MaxSize+1), ""); err == nil {
		t.Error("written")
	}
	big := bytes.Repeat([]byte("0123456789"), 300_000)
	if err := d.Write(t.Context(), "k", big, ""); err != nil {
		t.Fatal(err)
	}
	if value, _, err := d.Read(t.Context(), "k"); err != nil || !bytes.Equal(value, big) {
		t.Errorf("%d bytes, %v", len(value), err)
	}
}

// Of several writers that saw the same version exactly one wins.
func TestCompareAndReplace(t *testing.T) {
	d, path := open(t)
	other, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		dir := []*state.Dir{d, other}[i%2]
		wg.Go(func() {
			for done := 0; done < 10; {
				value, version, err := dir.Read(t.Context(), "n")
				if err != nil {
					t.Error(err)
					return
				}
				switch err := dir.Write(t.Context(), "n", append(value, 'x'), version); {
				case err == nil:
					done++
				case !errors.Is(err, state.ErrChanged):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if value, _ := read(t, d, "n"); len(value) != 80 {
		t.Errorf("%d writes counted, want 80", len(value))
	}
}

func TestLock(t *testing.T) {
	d, path := open(t)
	other, _ := state.Open(path)
	release, err := d.Lock(t.Context(), "github")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := other.Lock(t.Context(), "gitlab"); err != nil {
		t.Errorf("another key: %v", err)
	} else {
		again()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Lock(ctx, "github"); !errors.Is(err, context.Canceled) {
		t.Errorf("held: %v", err)
	}
	if err := other.Write(t.Context(), "github", []byte("v"), ""); err != nil {
		t.Errorf("the holder must be able to write: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		again, err := other.Lock(t.Context(), "github")
		if err == nil {
			again()
		}
		got <- err
	}()
	release()
	if err := <-got; err != nil {
		t.Errorf("after release: %v", err)
	}
}
