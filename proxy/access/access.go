// Package access knows who calls and what they may see.
package access

// A Caller is whoever sent a request. Sessions, streams and upstream sessions are bound
// to it. The zero value is the one anonymous caller of a loopback listener.
type Caller struct {
	Name string // unique among callers; "" is anonymous
}
