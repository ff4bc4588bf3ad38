package main

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
)

// logger writes to stderr, whatever else: under stdio, stdout belongs to the protocol.
func (a *app) logger(l config.Log) zerolog.Logger {
	out := zerolog.SyncWriter(a.errs)
	if l.Format == "console" || l.Format == "auto" && isTerminal(a.errs) {
		_, plain := a.env("NO_COLOR")
		out = zerolog.ConsoleWriter{Out: out, NoColor: plain || !isTerminal(a.errs), TimeFormat: time.TimeOnly}
	}
	level, err := zerolog.ParseLevel(l.Level)
	if err != nil { // config lets no other through
		level = zerolog.InfoLevel
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}
