package main

import (
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
)

// logger writes to stderr, whatever else: under stdio, stdout belongs to the protocol.
func (a *app) logger(l config.Log) zerolog.Logger {
	var out io.Writer = a.lines
	if l.Format == "console" || l.Format == "auto" && isTerminal(a.errs) {
		_, plain := a.env("NO_COLOR")
		out = zerolog.ConsoleWriter{Out: zerolog.SyncWriter(a.errs), NoColor: plain || !isTerminal(a.errs), TimeFormat: time.TimeOnly}
	}
	level, err := zerolog.ParseLevel(l.Level)
	if err != nil { // config lets no other through
		level = zerolog.InfoLevel
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}

const (
	batchTime = 50 * time.Millisecond // that a line waits for others at most
	batchSize = 16 << 10              // bytes that are written at once at the latest
)

// A batch writes log lines, several at a time: a line for every call would cost a good
// part of what the call itself costs. Warnings and worse do not wait.
type batch struct {
	out io.Writer

	mu      sync.Mutex // guards what follows, and keeps the lines in order on their way out
	lines   []byte
	pending bool // Flush will be called
}

func (b *batch) Write(line []byte) (int, error) { return b.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel takes one line (zerolog.LevelWriter).
func (b *batch) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line...)
	switch {
	case level >= zerolog.WarnLevel || len(b.lines) >= batchSize:
		b.write()
	case !b.pending:
		b.pending = true
		time.AfterFunc(batchTime, b.Flush)
	}
	return len(line), nil
}

// Flush writes what waits.
func (b *batch) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = false
	b.write()
}

// write is called under mu.
func (b *batch) write() {
	if len(b.lines) > 0 {
		_, _ = b.out.Write(b.lines) // a log that cannot be written has nowhere to say so
		b.lines = b.lines[:0]
	}
}
