// Mainstem is one MCP endpoint in front of many MCP servers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The context ends at the first signal, so that a command can end its children.
	// Then the signals have their usual effect again: a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, errs: os.Stderr, env: os.LookupEnv}
	os.Exit(a.run(ctx, os.Args[1:]))
}
