package document

import (
	"slices"
	"time"
)

// An Object is a mapping whose keys are fixed. It notes which keys it was asked for.
type Object struct {
	Value
	entries []Entry
	known   []string        // asked for so far
	alien   map[string]bool // foreign keys, understood but never suggested
}

// NewObject makes one of entries, which may come from several files. It has no place of
// its own, so nothing may be reported of it as a whole.
func NewObject(entries []Entry) *Object { return &Object{entries: entries} }

// Object reads a mapping whose keys are fixed: call Close when every key was asked for.
func (v Value) Object() (*Object, bool) {
	if v.kind != mapping {
		v.Wrong("a mapping")
		return nil, false
	}
	entries, _ := v.Entries()
	return &Object{Value: v, entries: entries}, true
}

// Get returns the value of key, which thereby is a known one. False: it is not written.
func (o *Object) Get(key string) (Value, bool) {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	return o.Find(key)
}

// Foreign is Get for a key that is understood and never suggested.
func (o *Object) Foreign(key string) (Value, bool) {
	if o.alien == nil {
		o.alien = map[string]bool{}
	}
	o.alien[key] = true
	return o.Find(key)
}

// Find is Get, but does not make key a known one.
func (o *Object) Find(key string) (Value, bool) {
	for _, e := range o.entries {
		if e.Key == key {
			return e.Value, true
		}
	}
	return Value{}, false
}

// Has reports whether key is written.
func (o *Object) Has(key string) bool {
	_, there := o.Find(key)
	return there
}

// Only reports the keys that were asked for and do not go with what: all but these.
func (o *Object) Only(what string, keys ...string) {
	for _, e := range o.entries {
		if slices.Contains(o.known, e.Key) && !slices.Contains(keys, e.Key) {
			e.Errorf("does not go with %s (leave it out)", what)
		}
	}
}

// Close reports the keys that nobody asked for. hints say what to write instead; else
// the known key is suggested that comes nearest.
func (o *Object) Close(hints map[string]string) {
	for _, e := range o.entries {
		if slices.Contains(o.known, e.Key) || o.alien[e.Key] {
			continue
		}
		right, hinted := hints[e.Key]
		if !hinted {
			right = correct(e.Key, o.known)
		}
		e.Errorf("unknown key %q (%s)", Clip(e.Key), right)
	}
}

// The methods below read one key of o into a variable, which keeps its default if the
// key is absent or wrong.

// SetText reads a text.
func (o *Object) SetText(key string, to *string) {
	if v, there := o.Get(key); there {
		if s, ok := v.Text(); ok {
			*to = s
		}
	}
}

// SetOneOf reads one of a few texts.
func (o *Object) SetOneOf(key string, to *string, options ...string) {
	if v, there := o.Get(key); there {
		if s, ok := v.OneOf(options...); ok {
			*to = s
		}
	}
}

// SetBool reads true or false.
func (o *Object) SetBool(key string, to *bool) {
	if v, there := o.Get(key); there {
		if b, ok := v.Bool(); ok {
			*to = b
		}
	}
}

// SetInt reads a whole number in a range.
func (o *Object) SetInt(key string, to *int, least, most int64) {
	if v, there := o.Get(key); there {
		if n, ok := v.Int(least, most); ok {
			*to = int(n)
		}
	}
}

// SetDuration reads a duration in a range.
func (o *Object) SetDuration(key string, to *time.Duration, least, most time.Duration) {
	if v, there := o.Get(key); there {
		if d, ok := v.Duration(least, most); ok {
			*to = d
		}
	}
}
