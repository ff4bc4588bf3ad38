// Package state keeps what survives a restart: one small file a key, readable by its owner alone and replaced whole.
package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// MaxSize is the largest value in bytes, on the way in and on the way out.
const MaxSize = 64 << 20

// AnyVersion given to Write replaces whatever is there.
const AnyVersion = "*"

// ErrChanged says that the stored value is not the one that the writer had seen.
var ErrChanged = errors.New("changed by somebody else")

const (
	suffixValue = ".state"
	suffixLock  = ".lock"
	suffixTemp  = ".tmp"
	guardName   = "guard" + suffixLock // serialises compare-and-replace among processes; no key has this name, see fileName
)

// staleAfter is how old a temporary file must be before it counts as the remains of a process that died while writing.
const staleAfter = time.Hour

// A Dir is one folder of values. Its methods may be called from any goroutine, and by several processes at once.
// A file that cannot be read costs its own key only.
type Dir struct {
	path string // set by Open, never changed
}

// Open makes the folder with mode 0700 if it is not there. An existing folder that holds nothing but our own files is
// narrowed to 0700; any other is left alone, since it may be somebody's home.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("state: %s: not a folder", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	d := &Dir{path: path}
	if foreign := d.sweep(entries); !foreign && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o700); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
	}
	return d, nil
}

// sweep removes what dead writers left, and reports whether there is anything in the folder that is not ours.
func (d *Dir) sweep(entries []fs.DirEntry) (foreign bool) {
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case suffixValue, suffixLock:
		case suffixTemp:
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
				os.Remove(filepath.Join(d.path, e.Name()))
			}
		default:
			foreign = true
		}
	}
	return foreign
}

// Read returns a value and its version. A key that has none gives nil, "" and no error.
func (d *Dir) Read(ctx context.Context, key string) (value []byte, version string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	value, err = readFile(d.file(key, suffixValue))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("state: read %q: %w", key, err)
	}
	return value, versionOf(value), nil
}

// Write replaces the value of a key, or removes it if value is nil. It fails with ErrChanged unless version is what
// Read gave last ("" when there was nothing) or AnyVersion.
func (d *Dir) Write(ctx context.Context, key string, value []byte, version string) error {
	if len(value) > MaxSize {
		return fmt.Errorf("state: write %q: %d bytes (at most %d)", key, len(value), MaxSize)
	}
	release, err := lock(ctx, filepath.Join(d.path, guardName))
	if err != nil {
		return fmt.Errorf("state: write %q: %w", key, err)
	}
	defer release()
	if err := d.replace(ctx, key, value, version); err != nil {
		return fmt.Errorf("state: write %q: %w", key, err)
	}
	return nil
}

// replace needs the guard.
func (d *Dir) replace(ctx context.Context, key string, value []byte, version string) error {
	if version != AnyVersion {
		_, current, err := d.Read(ctx, key)
		if err != nil {
			return err
		}
		if current != version {
			return ErrChanged
		}
	}
	name := d.file(key, suffixValue)
	if value == nil {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return syncDir(d.path)
	}
	return d.replaceFile(name, value)
}

// replaceFile writes beside the file and renames, so that a reader, or a machine that loses power, sees the old value
// or the new one.
func (d *Dir) replaceFile(name string, value []byte) error {
	temp, err := os.CreateTemp(d.path, "*"+suffixTemp) // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // does nothing after the rename
	_, err = temp.Write(value)
	if err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	return syncDir(d.path)
}

// Lock waits until nobody else holds the key, in this process or another one on this machine. It ends with release, or
// with the process; Read and Write do not look at it.
func (d *Dir) Lock(ctx context.Context, key string) (release func(), err error) {
	release, err = lock(ctx, d.file(key, suffixLock))
	if err != nil {
		return nil, fmt.Errorf("state: lock %q: %w", key, err)
	}
	return release, nil
}

func (d *Dir) file(key, suffix string) string {
	return filepath.Join(d.path, fileName(key)+suffix)
}

// fileName makes a file name of any key: one name a key even where case does not count, without dots or separators, and
// short enough for every file system.
func fileName(key string) string {
	const longest = 160
	var b strings.Builder
	b.WriteString("k-") // no key is empty, hidden, or called like the guard
	for i := 0; i < len(key) && b.Len() < longest; i++ {
		c := key[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() < longest {
		return b.String()
	}
	sum := sha256.Sum256([]byte(key))
	return b.String()[:longest-1] + "~" + hex.EncodeToString(sum[:])
}

// versionOf names a value by its content: two processes agree without a counter that could be lost.
func versionOf(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:16])
}

func readFile(name string) ([]byte, error) {
	// Without O_NONBLOCK a pipe in place of the file would hold us up for ever.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > MaxSize {
		return nil, fmt.Errorf("%d bytes (at most %d)", info.Size(), MaxSize)
	}
	value, err := io.ReadAll(io.LimitReader(f, MaxSize+1)) // it may still grow, if somebody else writes to it
	if err != nil {
		return nil, err
	}
	if len(value) > MaxSize {
		return nil, fmt.Errorf("more than %d bytes", MaxSize)
	}
	return value, nil
}

// lock tries with growing pauses, because a blocking flock cannot be called off.
func lock(ctx context.Context, name string) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	pause := time.Millisecond
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// The kernel lets go when the last descriptor is closed: children never inherit this one.
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
			pause = min(pause*2, 50*time.Millisecond)
		}
	}
}

// syncDir makes a rename or a removal last.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return err
	}
	return nil
}
