package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
)

// row writes one line of a table. Empty cells are columns that are not shown.
func row(w io.Writer, cells ...string) {
	shown := cells[:0]
	for _, cell := range cells {
		if cell != "" {
			shown = append(shown, clean(cell))
		}
	}
	fmt.Fprintln(w, strings.Join(shown, "\t"))
}

func when(wanted bool, cell string) string {
	if wanted {
		return cell
	}
	return ""
}

func dash(text string) string {
	if text = summary(text); text != "" {
		return text
	}
	return "-"
}

// maxSummary is how many characters of a description a table shows.
const maxSummary = 80

// summary is the first line of a text, cut to fit a table.
func summary(text string) string {
	text = strings.TrimSpace(text)
	if line, _, more := strings.Cut(text, "\n"); more {
		text = strings.TrimSpace(line) + "…"
	}
	if runes := []rune(text); len(runes) > maxSummary {
		text = string(runes[:maxSummary-1]) + "…"
	}
	return text
}

// clean makes text of strangers fit for a terminal: whatever could move the cursor or
// change colours becomes a visible mark.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// progress shows on stderr, if that is a terminal, that something takes longer than a
// second. The returned function ends it and may be called again.
func (a *app) progress(doing string) (stop func()) {
	if !isTerminal(a.errs) {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		began := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(a.errs, "\r\x1b[K%s … %d s", doing, int(time.Since(began).Seconds()))
			case <-done:
				if time.Since(began) >= time.Second {
					fmt.Fprint(a.errs, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-gone
	})
}
