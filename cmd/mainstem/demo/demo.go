// Package demo knows two small MCP servers to try Mainstem with: notes and calendar.
// Both have a tool named search, as servers in the field do.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Names returns what Run accepts.
func Names() []string { return []string{"notes", "calendar"} }

// Run serves the named server on in and out until in ends or ctx is cancelled. What
// clients change lives as long as the process. Diagnostics go to errs.
func Run(ctx context.Context, name, version string, in io.Reader, out, errs io.Writer) error {
	var tools []server.ServerTool
	var about string
	switch name {
	case "notes":
		tools, about = newNotes().tools(), "Field notes of a river warden. Search them before you add one."
	case "calendar":
		tools, about = newCalendar().tools(), "The calendar of a river warden. Times are RFC 3339; the seed lies in May 2026."
	default:
		return fmt.Errorf("demo: unknown server %q (want %s)", name, strings.Join(Names(), " or "))
	}
	s := server.NewMCPServer("mainstem-demo-"+name, version,
		server.WithInstructions(about),
		server.WithToolCapabilities(false),
		server.WithInputSchemaValidation(),
		server.WithRecovery())
	s.AddTools(tools...)
	stdio := server.NewStdioServer(s)
	stdio.SetErrorLogger(log.New(errs, "demo "+name+": ", 0))
	if err := stdio.Listen(ctx, in, out); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("demo: %s: %w", name, err)
	}
	return nil
}

// A definition is one tool as it is listed. The schemas are written out: a demo should
// show what a model gets to read.
type definition struct {
	name, title, description string
	input, output            string // JSON schemas; output may be ""
	reads, destroys          bool
}

// tool binds a definition to what it does. An error of do becomes the result of a
// failed tool, because the model can act on it.
func tool[A any](d definition, do func(A) (text string, data any, err error)) server.ServerTool {
	listed := mcp.NewToolWithRawSchema(d.name, d.description, json.RawMessage(d.input))
	listed.Title = d.title
	if d.output != "" {
		listed.RawOutputSchema = json.RawMessage(d.output)
	}
	no, repeatable := false, d.reads || d.destroys
	listed.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: &d.reads, DestructiveHint: &d.destroys, IdempotentHint: &repeatable, OpenWorldHint: &no,
	}
	handle := func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args A
		if err := r.BindArguments(&args); err != nil {
			return mcp.NewToolResultErrorf("arguments: %v", err), nil
		}
		text, data, err := do(args)
		switch {
		case err != nil:
			return mcp.NewToolResultError(err.Error()), nil
		case data == nil:
			return mcp.NewToolResultText(text), nil
		}
		return mcp.NewToolResultStructured(data, text), nil
	}
	return server.ServerTool{Tool: listed, Handler: handle}
}

// contains reports whether any of the texts holds every word of query, whatever the case.
func contains(query string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}
