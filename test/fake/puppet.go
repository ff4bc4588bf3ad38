package fake

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
)

// puppetArg as the first argument makes a test's binary a puppet; the second is where the strings end.
const puppetArg = "mcp-puppet"

// grandchild as the third argument makes a puppet that reads nothing and only stands in the way.
const grandchild = "grandchild"

// A report is what a puppet says: first who it is, then what happens to it.
type report struct {
	Pid   int      `json:",omitempty"`
	Role  string   `json:",omitempty"`
	Env   []string `json:",omitempty"`
	Args  []string `json:",omitempty"`
	Dir   string   `json:",omitempty"`
	Line  []byte   `json:",omitempty"`
	Event string   `json:",omitempty"` // EOF, SIGTERM
}

// An order is what a puppet is to do.
type order struct {
	Begin    bool   `json:",omitempty"` // reads its input from now on
	Out      []byte `json:",omitempty"`
	Split    bool   `json:",omitempty"` // Out byte by byte
	Err      []byte `json:",omitempty"`
	Exit     *int   `json:",omitempty"`
	Stubborn bool   `json:",omitempty"`
	Spawn    bool   `json:",omitempty"`
	Deaf     bool   `json:",omitempty"`
}

// Main makes this process a puppet, and does not return, if its arguments ask for one. TestMain calls it before anything else.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != puppetArg {
		return
	}
	conn, err := net.Dial("tcp", os.Args[2])
	if err != nil {
		os.Exit(70)
	}
	p := &puppet{reports: json.NewEncoder(conn)}
	dir, _ := os.Getwd()
	hello := report{Pid: os.Getpid(), Env: os.Environ(), Args: os.Args[3:], Dir: dir}
	if len(os.Args) > 3 && os.Args[3] == grandchild {
		hello.Role, p.mute = grandchild, true
		p.stubborn.Store(true)
	}
	p.report(hello)
	p.obey(json.NewDecoder(bufio.NewReader(conn)))
	os.Exit(0) // the test is over
}

type puppet struct {
	mute     bool        // set by Main, never changed
	stubborn atomic.Bool // goes on after the end of its input and after SIGTERM
	deaf     atomic.Bool // reads no more

	mu      sync.Mutex // guards what follows
	reports *json.Encoder
}

func (p *puppet) report(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.reports.Encode(r)
}

func (p *puppet) obey(orders *json.Decoder) {
	go p.watchSignals()
	for {
		var o order
		if orders.Decode(&o) != nil {
			return
		}
		switch {
		case o.Begin && !p.mute:
			go p.read()
		case o.Out != nil:
			speak(o)
		case o.Err != nil:
			_, _ = os.Stderr.Write(o.Err)
		case o.Exit != nil:
			os.Exit(*o.Exit)
		case o.Stubborn:
			p.stubborn.Store(true)
		case o.Spawn:
			spawn()
		case o.Deaf:
			p.deaf.Store(true)
		}
	}
}

func speak(o order) {
	if !o.Split {
		_, _ = os.Stdout.Write(o.Out)
		return
	}
	for i := range o.Out {
		_, _ = os.Stdout.Write(o.Out[i : i+1])
	}
}

func spawn() {
	child := exec.Command(os.Args[0], puppetArg, os.Args[2], grandchild)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = child.Start()
}

func (p *puppet) watchSignals() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	for range signals {
		p.report(report{Event: "SIGTERM"})
		if !p.stubborn.Load() {
			os.Exit(0)
		}
	}
}

// read passes on each line of the standard input.
func (p *puppet) read() {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for !p.deaf.Load() {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			p.report(report{Line: line})
		}
		if errors.Is(err, io.EOF) {
			p.report(report{Event: "EOF"})
		}
		if err != nil {
			break
		}
	}
	if !p.stubborn.Load() && !p.deaf.Load() {
		os.Exit(0)
	}
}
