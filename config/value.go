package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A value is a node with its place: what it should be is asked with the methods
// below, each of which reports what is wrong and then returns false.
type value struct {
	*node
	file *file
	line int // of the key, where there is one
	path string
}

func (v value) errorf(format string, args ...any) {
	v.file.report.error(v.file.name, v.line, v.path, fmt.Sprintf(format, args...))
}

func (v value) warnf(format string, args ...any) {
	v.file.report.warn(v.file.name, v.line, v.path, fmt.Sprintf(format, args...))
}

// place returns FILE:LINE.
func (v value) place() string { return fmt.Sprintf("%s:%d", v.file.name, v.line) }

// wrong reports a wrong type.
func (v value) wrong(want string) {
	switch v.kind {
	case null:
		v.errorf("has no value (want %s, or leave the key out)", want)
	case list:
		v.errorf("is a list (want %s)", want)
	case mapping:
		v.errorf("is a mapping (want %s)", want)
	case strange:
		v.errorf("has a YAML tag (want %s)", want)
	case text:
		v.errorf("is a text (want %s)", want)
	case boolean:
		v.errorf("is true or false (want %s)", want)
	default:
		v.errorf("is a number (want %s)", want)
	}
}

func (v value) text() (string, bool) {
	switch v.kind {
	case text:
		return v.scalar, true
	case integer, float, boolean:
		// Nothing is guessed: 010 and 10 are not the same text.
		v.wrong("a text: put it in quotes")
	default:
		v.wrong("a text")
	}
	return "", false
}

// filled is a text that is not blank.
func (v value) filled() (string, bool) {
	s, ok := v.text()
	if ok && strings.TrimSpace(s) == "" {
		v.errorf("is empty (write a value or leave the key out)")
		return "", false
	}
	return s, ok
}

func (v value) oneOf(options ...string) (string, bool) {
	s, ok := v.text()
	if !ok {
		return "", false
	}
	if !slices.Contains(options, s) {
		v.errorf("unknown %s %q (want %s)", v.path[strings.LastIndexByte(v.path, '.')+1:], clip(s), or(options))
		return "", false
	}
	return s, true
}

func (v value) boolean() (bool, bool) {
	if v.kind == boolean {
		switch strings.ToLower(v.scalar) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	v.wrong("true or false")
	return false, false
}

func (v value) integer(least, most int64) (int64, bool) {
	var n int64
	var err error
	switch v.kind {
	case integer:
		n, err = strconv.ParseInt(v.scalar, 0, 64)
	case float:
		var x float64
		x, err = strconv.ParseFloat(v.scalar, 64)
		if err == nil && x != math.Trunc(x) {
			v.errorf("%s has a fraction (want a whole number)", clip(v.scalar))
			return 0, false
		}
		if n = int64(x); math.Abs(x) > 1<<53 {
			err = strconv.ErrRange
		}
	default:
		v.wrong("a whole number")
		return 0, false
	}
	if err != nil || n < least || n > most {
		v.errorf("%s is out of range (want %d to %d)", clip(v.scalar), least, most)
		return 0, false
	}
	return n, true
}

// duration reads a Go duration, or a bare number of seconds.
func (v value) duration(least, most time.Duration) (time.Duration, bool) {
	var d time.Duration
	ok := false
	switch v.kind {
	case integer, float:
		d, ok = v.seconds(least, most)
	case text:
		var err error
		if d, err = time.ParseDuration(v.scalar); err != nil {
			v.errorf("no duration: %q (want one such as 30s or 1h30m, or a number of seconds)", clip(v.scalar))
		}
		ok = err == nil
	default:
		v.wrong("a duration such as 30s, or a number of seconds")
	}
	if ok && (d < least || d > most) {
		v.errorf("%s is out of range (want %s to %s)", clip(v.scalar), short(least), short(most))
		return 0, false
	}
	return d, ok
}

func (v value) seconds(least, most time.Duration) (time.Duration, bool) {
	const longest = 1e9 // fits a Duration and is out of every range
	n, err := strconv.ParseFloat(strings.ReplaceAll(v.scalar, "_", ""), 64)
	if err != nil || math.IsNaN(n) {
		v.wrong("a duration such as 30s, or a number of seconds")
		return 0, false
	}
	n = max(min(n, longest), -1)
	if n >= 1000 && n > most.Seconds() {
		meant := max(least, min(most, time.Duration(n*float64(time.Millisecond))))
		v.errorf("%s is out of range (%s to %s) and looks like milliseconds: a bare number is seconds (write %s)",
			clip(v.scalar), short(least), short(most), short(meant))
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

func (v value) list() ([]value, bool) {
	if v.kind != list {
		v.wrong("a list")
		return nil, false
	}
	out := make([]value, len(v.items))
	for i, item := range v.items {
		out[i] = value{item, v.file, item.line, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return out, true
}

// texts is a list of texts that are not blank; never nil if it is one.
func (v value) texts() ([]string, bool) {
	items, ok := v.list()
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, filled := item.filled()
		ok = ok && filled
		out = append(out, s)
	}
	return out, ok
}

// entries are the members of a mapping whose keys are free.
func (v value) entries() ([]entry, bool) {
	if v.kind != mapping {
		v.wrong("a mapping")
		return nil, false
	}
	out := make([]entry, len(v.members))
	for i, m := range v.members {
		out[i] = entry{m.key, value{m.value, v.file, m.line, join(v.path, m.key)}}
	}
	return out, true
}

type entry struct {
	key string
	value
}

// object reads a mapping whose keys are fixed: call close when every key was asked for.
func (v value) object() (*object, bool) {
	if v.kind != mapping {
		v.wrong("a mapping")
		return nil, false
	}
	entries, _ := v.entries()
	return &object{value: v, entries: entries}, true
}

type object struct {
	value
	entries []entry
	known   []string        // asked for so far
	alien   map[string]bool // foreign keys, understood but never suggested
}

// get returns the value of key, which thereby is a known one.
func (o *object) get(key string) (value, bool) {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	return o.find(key)
}

// foreign is get for a key of another client's file.
func (o *object) foreign(key string) (value, bool) {
	if o.alien == nil {
		o.alien = map[string]bool{}
	}
	o.alien[key] = true
	return o.find(key)
}

func (o *object) find(key string) (value, bool) {
	for _, e := range o.entries {
		if e.key == key {
			return e.value, true
		}
	}
	return value{}, false
}

func (o *object) has(key string) bool {
	_, there := o.find(key)
	return there
}

// close reports the keys that nobody asked for. hints say what to write instead.
func (o *object) close(hints map[string]string) {
	for _, e := range o.entries {
		if slices.Contains(o.known, e.key) || o.alien[e.key] {
			continue
		}
		right, hinted := hints[e.key]
		if !hinted {
			right = correct(e.key, o.known)
		}
		e.errorf("unknown key %q (%s)", clip(e.key), right)
	}
}

// The setters below read one key of o into a field and leave the default if the
// key is absent or wrong.

func (o *object) setText(key string, to *string) {
	if v, there := o.get(key); there {
		if s, ok := v.text(); ok {
			*to = s
		}
	}
}

func (o *object) setOneOf(key string, to *string, options ...string) {
	if v, there := o.get(key); there {
		if s, ok := v.oneOf(options...); ok {
			*to = s
		}
	}
}

func (o *object) setBool(key string, to *bool) {
	if v, there := o.get(key); there {
		if b, ok := v.boolean(); ok {
			*to = b
		}
	}
}

func (o *object) setInt(key string, to *int, least, most int64) {
	if v, there := o.get(key); there {
		if n, ok := v.integer(least, most); ok {
			*to = int(n)
		}
	}
}

func (o *object) setDuration(key string, to *time.Duration, least, most time.Duration) {
	if v, there := o.get(key); there {
		if d, ok := v.duration(least, most); ok {
			*to = d
		}
	}
}
