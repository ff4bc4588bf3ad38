package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Value is something in a file, with its place. What it should be is asked with the
// methods below, each of which reports what is wrong and then returns false. The zero
// Value is nowhere: only IsZero, IsNull and IsMapping may be called.
type Value struct {
	*node
	file *file
	line int // of the key, where there is one
	path string
}

// Errorf reports that v is wrong: what is wrong, and in brackets what would be right.
func (v Value) Errorf(format string, args ...any) {
	v.file.report.Wrong(v.file.name, v.line, v.path, fmt.Sprintf(format, args...))
}

// Warnf reports that somebody should look at v.
func (v Value) Warnf(format string, args ...any) {
	v.file.report.Warn(v.file.name, v.line, v.path, fmt.Sprintf(format, args...))
}

// File returns the name of the file.
func (v Value) File() string { return v.file.name }

// Path returns where v is in its file, as in servers.github.args[0].
func (v Value) Path() string { return v.path }

// Place returns FILE:LINE.
func (v Value) Place() string { return fmt.Sprintf("%s:%d", v.file.name, v.line) }

// IsZero reports whether v is the zero Value.
func (v Value) IsZero() bool { return v.node == nil }

// IsNull reports whether nothing, or null, is written.
func (v Value) IsNull() bool { return v.node != nil && v.kind == null }

// IsMapping reports whether v is a mapping.
func (v Value) IsMapping() bool { return v.node != nil && v.kind == mapping }

// Scalar returns v as it is written, quotes and escapes undone; "" if it is a list or a
// mapping. It checks nothing.
func (v Value) Scalar() string { return v.scalar }

// Equal reports whether v and other hold the same; the order of members does not count.
func (v Value) Equal(other Value) bool { return equal(v.node, other.node) }

// Wrong reports that v has another type than what is wanted.
func (v Value) Wrong(want string) {
	switch v.kind {
	case null:
		v.Errorf("has no value (want %s, or leave the key out)", want)
	case list:
		v.Errorf("is a list (want %s)", want)
	case mapping:
		v.Errorf("is a mapping (want %s)", want)
	case strange:
		v.Errorf("has a YAML tag (want %s)", want)
	case text:
		v.Errorf("is a text (want %s)", want)
	case boolean:
		v.Errorf("is true or false (want %s)", want)
	default:
		v.Errorf("is a number (want %s)", want)
	}
}

// Text is a text, which may be empty.
func (v Value) Text() (string, bool) {
	switch v.kind {
	case text:
		return v.scalar, true
	case integer, float, boolean:
		// Nothing is guessed: 010 and 10 are not the same text.
		v.Wrong("a text: put it in quotes")
	default:
		v.Wrong("a text")
	}
	return "", false
}

// Filled is a text that is not blank.
func (v Value) Filled() (string, bool) {
	s, ok := v.Text()
	if ok && strings.TrimSpace(s) == "" {
		v.Errorf("is empty (write a value or leave the key out)")
		return "", false
	}
	return s, ok
}

// OneOf is one of a few texts.
func (v Value) OneOf(options ...string) (string, bool) {
	s, ok := v.Text()
	if !ok {
		return "", false
	}
	if !slices.Contains(options, s) {
		v.Errorf("unknown %s %q (want %s)", v.path[strings.LastIndexByte(v.path, '.')+1:], Clip(s), or(options))
		return "", false
	}
	return s, true
}

// Bool is true or false.
func (v Value) Bool() (bool, bool) {
	if v.kind == boolean {
		switch strings.ToLower(v.scalar) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	v.Wrong("true or false")
	return false, false
}

// Int is a whole number in a range.
func (v Value) Int(least, most int64) (int64, bool) {
	var n int64
	var err error
	switch v.kind {
	case integer:
		n, err = strconv.ParseInt(v.scalar, 0, 64)
	case float:
		var x float64
		x, err = strconv.ParseFloat(v.scalar, 64)
		if err == nil && x != math.Trunc(x) {
			v.Errorf("%s has a fraction (want a whole number)", Clip(v.scalar))
			return 0, false
		}
		if n = int64(x); math.Abs(x) > 1<<53 {
			err = strconv.ErrRange
		}
	default:
		v.Wrong("a whole number")
		return 0, false
	}
	if err != nil || n < least || n > most {
		v.Errorf("%s is out of range (want %d to %d)", Clip(v.scalar), least, most)
		return 0, false
	}
	return n, true
}

// Duration reads a Go duration, or a bare number of seconds.
func (v Value) Duration(least, most time.Duration) (time.Duration, bool) {
	var d time.Duration
	ok := false
	switch v.kind {
	case integer, float:
		d, ok = v.seconds(least, most)
	case text:
		var err error
		if d, err = time.ParseDuration(v.scalar); err != nil {
			v.Errorf("no duration: %q (want one such as 30s or 1h30m, or a number of seconds)", Clip(v.scalar))
		}
		ok = err == nil
	default:
		v.Wrong("a duration such as 30s, or a number of seconds")
	}
	if ok && (d < least || d > most) {
		v.Errorf("%s is out of range (want %s to %s)", Clip(v.scalar), short(least), short(most))
		return 0, false
	}
	return d, ok
}

func (v Value) seconds(least, most time.Duration) (time.Duration, bool) {
	const longest = 1e9 // fits a Duration and is out of every range
	n, err := strconv.ParseFloat(strings.ReplaceAll(v.scalar, "_", ""), 64)
	if err != nil || math.IsNaN(n) {
		v.Wrong("a duration such as 30s, or a number of seconds")
		return 0, false
	}
	n = max(min(n, longest), -1)
	if n >= 1000 && n > most.Seconds() {
		meant := max(least, min(most, time.Duration(n*float64(time.Millisecond))))
		v.Errorf("%s is out of range (%s to %s) and looks like milliseconds: a bare number is seconds (write %s)",
			Clip(v.scalar), short(least), short(most), short(meant))
		return 0, false
	}
	return time.Duration(n * float64(time.Second)), true
}

// short prints 15m0s as 15m.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// List returns the items of a list.
func (v Value) List() ([]Value, bool) {
	if v.kind != list {
		v.Wrong("a list")
		return nil, false
	}
	out := make([]Value, len(v.items))
	for i, item := range v.items {
		out[i] = Value{item, v.file, item.line, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return out, true
}

// Texts is a list of texts that are not blank; never nil if it is one.
func (v Value) Texts() ([]string, bool) {
	items, ok := v.List()
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, filled := item.Filled()
		ok = ok && filled
		out = append(out, s)
	}
	return out, ok
}

// Entries are the members of a mapping whose keys are free.
func (v Value) Entries() ([]Entry, bool) {
	if v.kind != mapping {
		v.Wrong("a mapping")
		return nil, false
	}
	out := make([]Entry, len(v.members))
	for i, m := range v.members {
		out[i] = Entry{m.key, Value{m.value, v.file, m.line, join(v.path, m.key)}}
	}
	return out, true
}

// An Entry is a member of a mapping. Its place is that of the key.
type Entry struct {
	Key string
	Value
}
