package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

// Forms in which call prints a result.
const (
	outputText = "text"
	outputJSON = "json"
	outputRaw  = "raw"
)

// A calling is the flags of call.
type calling struct {
	source
	json   string
	given  bool // --json was
	output string
}

func (a *app) callCommand() *cobra.Command {
	var c calling
	cmd := &cobra.Command{
		Use: "call SERVER.TOOL [key=value …]", Short: "Call one tool", Args: calledWith,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.given = cmd.Flags().Changed("json")
			return a.call(cmd.Context(), &c, args[0], args[1:])
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&c.json, "json", "", "the arguments as a JSON object; - reads it from stdin (`ARGS`)")
	cmd.Flags().StringVar(&c.output, "output", outputText, "`FORM` of the result: text, json or raw")
	return cmd
}

func calledWith(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("call: which tool? (usage: %s)", cmd.UseLine())
	}
	for _, arg := range args[1:] {
		if key, _, ok := strings.Cut(arg, "="); !ok || key == "" {
			return usage("call: argument %q: want key=value", arg)
		}
	}
	return nil
}

func (a *app) call(ctx context.Context, c *calling, address string, pairs []string) error {
	switch c.output {
	case outputText, outputJSON, outputRaw:
	default:
		return usage("--output: unknown form %q (want text, json or raw)", c.output)
	}
	given, err := a.givenArguments(c)
	if err != nil {
		return err
	}
	b, err := c.open(ctx, a)
	if err != nil {
		return err
	}
	defer b.Close()
	stop := a.progress("calling " + clean(address))
	defer stop()
	t, err := b.Find(ctx, address)
	if err != nil {
		return err
	}
	args, err := arguments(given, pairs, t.schema)
	if err != nil {
		return err
	}
	result, err := b.Call(ctx, t, args, nil)
	stop()
	if err != nil {
		return err
	}
	return a.printResult(c.output, t, result)
}

// maxArguments bounds what is read from stdin.
const maxArguments = 64 << 20

// givenArguments are those of --json.
func (a *app) givenArguments(c *calling) (json.RawMessage, error) {
	if !c.given {
		return json.RawMessage("{}"), nil
	}
	text := []byte(c.json)
	if c.json == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(a.in, maxArguments+1)); err != nil {
			return nil, fmt.Errorf("--json -: read stdin: %w", err)
		}
		if len(text) > maxArguments {
			return nil, usage("--json -: more than %d bytes", maxArguments)
		}
	}
	return admin.Arguments(text)
}

func (a *app) printResult(output string, t target, result json.RawMessage) error {
	failed := string(jsonrpc.Get(result, "isError")) == "true"
	var err error
	switch {
	case output == outputRaw:
		err = a.write(jsonrpc.Compact(nil, result))
	case output == outputJSON && failed:
		err = a.print(admin.Failure{Error: &admin.Error{
			Kind: admin.ToolFailed, Message: plainText(result), Server: t.server, Tool: t.tool, Result: result,
		}})
	case output == outputJSON:
		err = a.write(jsonrpc.Pretty(nil, value(result)))
	default:
		text := plainText(result)
		if isTerminal(a.out) {
			text = cleanLines(text)
		}
		err = a.write([]byte(text))
	}
	if err == nil && failed {
		return exit(exitTool)
	}
	return err
}

// write writes what ends in exactly one newline of ours.
func (a *app) write(text []byte) error {
	_, err := a.out.Write(append(text, '\n'))
	return err
}

// value is what a result says as data: its structuredContent, else its text if that is
// one JSON value, else all of it.
func value(result json.RawMessage) json.RawMessage {
	if s := jsonrpc.Get(result, "structuredContent"); s != nil && !jsonrpc.IsNull(s) {
		return s
	}
	var texts []string
	for block := range jsonrpc.Elements(jsonrpc.Get(result, "content")) {
		text, ok := blockText(block)
		if !ok {
			return result
		}
		texts = append(texts, text)
	}
	text := []byte(strings.Join(texts, "\n"))
	if len(texts) > 0 && jsonrpc.Check(text) == nil {
		return text
	}
	return result
}

// plainText is a result for people: its texts, and a line for every other block.
func plainText(result json.RawMessage) string {
	var lines []string
	for block := range jsonrpc.Elements(jsonrpc.Get(result, "content")) {
		if text, ok := blockText(block); ok {
			lines = append(lines, text)
		} else {
			lines = append(lines, blockLine(block))
		}
	}
	return strings.Join(lines, "\n")
}

func blockText(block json.RawMessage) (string, bool) {
	if kind, _ := jsonrpc.Unquote(jsonrpc.Get(block, "type")); kind != "text" {
		return "", false
	}
	return jsonrpc.Unquote(jsonrpc.Get(block, "text"))
}

// blockLine describes a block that is no text: what it is, and how large.
func blockLine(block json.RawMessage) string {
	member := func(of json.RawMessage, name string) string {
		text, _ := jsonrpc.Unquote(jsonrpc.Get(of, name))
		return text
	}
	held := block
	if resource := jsonrpc.Get(block, "resource"); resource != nil {
		held = resource
	}
	words := []string{member(block, "type")}
	for _, name := range []string{"mimeType", "name", "uri"} {
		words = append(words, member(held, name))
	}
	size := len(block)
	switch data, blob, text := member(held, "data"), member(held, "blob"), member(held, "text"); {
	case data+blob != "":
		size = decodedSize(data + blob)
	case text != "":
		size = len(text)
	}
	words = append(words, fmt.Sprintf("%d bytes", size))
	return clean("[" + strings.Join(strings.Fields(strings.Join(words, " ")), " ") + "]")
}

// decodedSize is the length of what a base64 text holds.
func decodedSize(text string) int {
	return len(strings.TrimRight(text, "=")) * 3 / 4
}

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = clean(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
