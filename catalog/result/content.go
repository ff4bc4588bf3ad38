package result

import (
	"encoding/json"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// A survey is what a first look at a content tells.
type survey struct {
	list    bool // it is a list
	blocks  int  // that are left when nothings are skipped
	plains  int  // of these, plain texts as clients know them
	skipped bool // there are nothings
	joins   bool // there are plain texts beside each other, or some that are yet to be made
	blank   bool // no block is left but blank texts
}

func look(value json.RawMessage) survey {
	if text, ok := onlyText(value); ok {
		return survey{list: true, blocks: 1, plains: 1, blank: blank(text)}
	}
	s := survey{list: jsonrpc.IsArray(value), blank: true}
	afterText := false
	for b := range blocks(value) {
		if b.kind == nothing {
			s.skipped = true
			continue
		}
		made := b.kind == foreign || b.isBare()
		isText := made || b.kind == plain
		if b.kind == plain && !made {
			s.plains++
		}
		s.blocks++
		s.joins = s.joins || made || isText && afterText
		s.blank = s.blank && b.isBlank()
		afterText = isText
	}
	return s
}

// onlyText returns the text of a content that is one plain text as most servers write
// it. Most results are like this, and it is cheaper to see than to find out by parts.
func onlyText(value json.RawMessage) (text json.RawMessage, ok bool) {
	const start = len("[" + textOpening)
	if len(value) <= start || string(value[:start]) != "["+textOpening {
		return nil, false
	}
	end := jsonrpc.Skip(value, start-1)
	return value[start-1 : end], string(value[end:]) == "}]"
}

// joinTexts plans the content of Mixed.
func (p *plan) joinTexts() {
	s := look(p.want(content))
	start := len(p.work.B)
	switch {
	case s.blank && p.want(structured) != nil:
		p.work.B = appendTextOf(p.work.B, appendPretty, p.want(structured))
	case s.list && !s.skipped && !s.joins:
		return
	default:
		p.work.B = appendMixed(p.work.B, p.want(content))
	}
	p.set(content, p.since(start))
}

// joinAll plans the content of Text. result is what the server sent.
func (p *plan) joinAll(result json.RawMessage) {
	s := look(p.want(content))
	start := len(p.work.B)
	switch {
	case s.blank && p.want(structured) != nil:
		p.work.B = appendTextOf(p.work.B, appendPretty, p.want(structured))
	case s.blank:
		p.work.B = appendTextOf(p.work.B, jsonrpc.Compact, result)
	case s.list && !s.skipped && s.blocks == 1 && s.plains == 1:
		return
	default:
		w := writer{dst: append(p.work.B, '[')}
		for b := range blocks(p.want(content)) {
			w.text(b)
		}
		w.flush()
		p.work.B = append(w.dst, ']')
	}
	p.set(content, p.since(start))
}

// demandStructured plans for a tool that shows an outputSchema but sent no data: its
// only text may be the data, else the client is told why it gets none, since it would
// throw the answer away without a word.
func (p *plan) demandStructured(server string) {
	start := len(p.work.B)
	var ok bool
	if p.work.B, ok = appendOnlyObject(p.work.B, p.want(content)); ok {
		p.set(structured, p.since(start))
		return
	}
	out := append(p.work.B, '[')
	out = appendTextBlock(out, server+": the tool declares an outputSchema, but its result has no structuredContent; what it sent follows")
	for element := range jsonrpc.Elements(p.want(content)) {
		out = append(out, ',')
		out = append(out, element...)
	}
	p.work.B = append(out, ']')
	p.set(content, p.since(start))
	p.set(isError, isTrue)
}

// appendOnlyObject appends the object that the only block of a content is the text of.
func appendOnlyObject(dst []byte, list json.RawMessage) ([]byte, bool) {
	var only block
	n := 0
	for b := range blocks(list) {
		only = b
		n++
	}
	if n != 1 || only.kind != plain && only.kind != special {
		return dst, false
	}
	text, _ := jsonrpc.Unquote(only.text)
	value := []byte(text)
	if !jsonrpc.IsObject(value) || jsonrpc.Check(value) != nil {
		return dst, false
	}
	// Compact, so that its line ends do not break a frame.
	return jsonrpc.Compact(dst, value), true
}

func appendMixed(dst []byte, value json.RawMessage) []byte {
	w := writer{dst: append(dst, '[')}
	for b := range blocks(value) {
		switch b.kind {
		case nothing:
		case plain, foreign:
			w.text(b)
		default:
			w.block(b)
		}
	}
	w.flush()
	return append(w.dst, ']')
}

// A writer writes the elements of a list of blocks, and joins texts.
type writer struct {
	dst   []byte
	some  bool // an element is written
	run   int  // the number of texts that are being joined
	first block
}

// text adds a text to the run. The first one is held back: alone, it stays as it is.
func (w *writer) text(b block) {
	if b.kind == nothing {
		return
	}
	w.run++
	switch w.run {
	case 1:
		w.first = b
		return
	case 2:
		w.open()
	}
	w.dst = append(w.dst, '\\', 'n')
	w.dst = appendInner(w.dst, b)
}

// open begins the text block of a run.
func (w *writer) open() {
	w.comma()
	w.dst = append(w.dst, textOpening...)
	w.dst = appendInner(w.dst, w.first)
}

// block adds any other block.
func (w *writer) block(b block) {
	w.flush()
	w.comma()
	w.dst = append(w.dst, b.raw...)
}

// flush ends the run.
func (w *writer) flush() {
	switch run := w.run; {
	case run == 0:
		return
	case run == 1 && w.first.kind == plain && !w.first.isBare():
		w.comma()
		w.dst = append(w.dst, w.first.raw...)
	case run == 1:
		w.open()
		w.dst = append(w.dst, textClosing...)
	default:
		w.dst = append(w.dst, textClosing...)
	}
	w.run = 0
}

func (w *writer) comma() {
	if w.some {
		w.dst = append(w.dst, ',')
	}
	w.some = true
}

const (
	textOpening = `{"type":"text","text":"`
	textClosing = `"}`
)

// appendInner appends what stands between the quotes of a block's text.
func appendInner(dst []byte, b block) []byte {
	if b.kind == plain || b.kind == special {
		return append(dst, b.text[1:len(b.text)-1]...)
	}
	start := len(dst)
	dst = appendQuoted(dst, jsonrpc.Compact, b.raw)
	return append(dst[:start], dst[start+1:len(dst)-1]...)
}

// appendQuoted appends, as a JSON string, what write makes of value.
func appendQuoted(dst []byte, write func(dst, value []byte) []byte, value json.RawMessage) []byte {
	b := jsonrpc.NewBuffer()
	defer b.Release()
	b.B = write(b.B, value)
	return jsonrpc.AppendQuote(dst, string(b.B))
}

// appendTextOf appends a list of one text, which is what write makes of value.
func appendTextOf(dst []byte, write func(dst, value []byte) []byte, value json.RawMessage) []byte {
	dst = append(dst, `[{"type":"text","text":`...)
	return append(appendQuoted(dst, write, value), '}', ']')
}

func appendTextBlock(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	dst = jsonrpc.AppendQuote(dst, text)
	return append(dst, '}')
}
