// Mainstem is one MCP endpoint in front of many MCP servers.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel() // a command ends its children, and finishes what runs
		<-signals
		a.lines.Flush()
		os.Exit(exitInterrupted)
	}()
	code := a.run(ctx, os.Args[1:])
	a.lines.Flush()
	os.Exit(code)
}

func newApp(in io.Reader, out, errs io.Writer, env func(string) (string, bool)) *app {
	return &app{in: in, out: out, errs: errs, env: env, lines: &batch{out: errs}}
}
