package protocol

// Methods that we act on ourselves.
const (
	Initialize   = "initialize"
	Initialized  = "notifications/initialized"
	Discover     = "server/discover"
	Ping         = "ping"
	SetLevel     = "logging/setLevel"
	ListTools    = "tools/list"
	CallTool     = "tools/call"
	Listen       = "subscriptions/listen"
	Acknowledged = "notifications/subscriptions/acknowledged"
	Cancelled    = "notifications/cancelled"
	Progress     = "notifications/progress"
	LogMessage   = "notifications/message"
	ToolsChanged = "notifications/tools/list_changed"
)

// A Method is one request that clients may make: its row in the table.
type Method struct {
	Name       string
	NameMember string // the member of params that Mcp-Name repeats; "" if none
	Legacy     bool   // known up to 2025-11-25
	Modern     bool   // known in 2026-07-28
}

// MethodOf returns the row of a method; false if we do not serve it.
func MethodOf(name string) (Method, bool) {
	for _, m := range methods {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

var methods = [...]Method{
	{Name: CallTool, NameMember: "name", Legacy: true, Modern: true},
	{Name: ListTools, Legacy: true, Modern: true},
	{Name: Ping, Legacy: true},
	{Name: Initialize, Legacy: true},
	{Name: SetLevel, Legacy: true},
	{Name: Discover, Modern: true},
	{Name: Listen, Modern: true},
}

// Knows reports whether the method exists in an era.
func (m Method) Knows(e Era) bool {
	return e == Legacy && m.Legacy || e == Modern && m.Modern
}

// Level returns the rank of a log level (RFC 5424), from 0 for debug to 7 for
// emergency; -1 for a text that is none.
func Level(name string) int {
	for rank, level := range levels {
		if level == name {
			return rank
		}
	}
	return -1
}

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
