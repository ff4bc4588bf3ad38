package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
	"github.com/mainstem-mcp/mainstem/proxy/front/stdio"
)

func (a *app) serveCommand() *cobra.Command {
	var paths []string
	var listen string
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve every configured server over HTTP", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen == "" && cmd.Flags().Changed("listen") {
				return usage("--listen: no address (want HOST:PORT such as 127.0.0.1:8390)")
			}
			return a.serve(cmd.Context(), paths, listen)
		},
	}
	configFlag(cmd, &paths)
	cmd.Flags().StringVar(&listen, "listen", "", "listen on `ADDRESS` instead of what the configuration says")
	return cmd
}

func (a *app) serve(ctx context.Context, paths []string, listen string) error {
	cfg, err := a.load(paths)
	if err != nil {
		return err
	}
	if listen != "" {
		if err := config.CheckListen(listen, cfg.InsecureNoAuth); err != nil {
			return usage("--listen: %v", err)
		}
		cfg.Listen = listen
	}
	p, err := a.assemble(ctx, cfg)
	if err != nil {
		return err
	}
	defer p.set.Close()
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return &admin.Error{Kind: admin.Other, Message: fmt.Sprintf("listen on %s: %v", cfg.Listen, err), Cause: err}
	}
	p.log.Info().Str("url", "http://"+ln.Addr().String()+"/mcp").Int("servers", len(cfg.Servers)).Msg("listening")
	door := p.door()
	return p.run(ctx, func(ctx context.Context) error { return door.Serve(ctx, ln) })
}

// assemble wires what serves clients, and logs what the configuration should not say.
func (a *app) assemble(ctx context.Context, cfg *config.Config) (*parts, error) {
	log := a.logger(cfg.Log)
	for _, w := range cfg.Warnings {
		log.Warn().Str("problem", w.String()).Msg("configuration")
	}
	return wire(ctx, cfg, log, wiring{serving: true})
}

// run keeps everything behind serve going until it returns, and then ends it.
func (p *parts) run(ctx context.Context, serve func(context.Context) error) error {
	// Calls that are being finished after ctx need what is behind them.
	behind, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{p.set.Run, p.proxy.Run, p.table.Run} {
		running.Go(func() {
			if err := run(behind); err != nil {
				p.log.Error().Err(err).Msg("stopped by itself")
			}
		})
	}
	told := context.AfterFunc(ctx, func() { p.log.Info().Msg("stopping") })
	defer told()
	err := serve(ctx)
	p.table.Close()
	cancel()
	running.Wait()
	return err
}

func (a *app) stdioCommand() *cobra.Command {
	var s source
	cmd := &cobra.Command{
		Use: "stdio", Short: "Serve every configured server on stdin and stdout", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stdio(cmd.Context(), &s) },
	}
	configFlag(cmd, &s.config)
	s.remoteFlags(cmd)
	return cmd
}

func (a *app) stdio(ctx context.Context, s *source) error {
	base, key, err := s.remote(a)
	if err != nil {
		return err
	}
	if base != nil {
		return a.bridge(ctx, base, key)
	}
	cfg, err := a.load(s.config)
	if err != nil {
		return err
	}
	p, err := a.assemble(ctx, cfg)
	if err != nil {
		return err
	}
	defer p.set.Close()
	front := stdio.New(p.proxy, p.table, stdio.Options{MaxRequestBytes: int(cfg.Limits.MaxRequestBytes)})
	return p.run(ctx, func(ctx context.Context) error { return front.Run(ctx, a.in, a.out) })
}
