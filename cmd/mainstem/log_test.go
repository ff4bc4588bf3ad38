package main

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func TestBatchWritesLinesTogetherAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		b := &batch{out: &out}
		log := zerolog.New(b)
		log.Info().Msg("1")
		log.Info().Msg("2")
		if got := out.all(); len(got) != 0 {
			t.Errorf("written at once: %q", got)
		}
		time.Sleep(batchTime)
		synctest.Wait()
		log.Info().Msg("3")
		log.Warn().Msg("4")
		log.Info().Msg("5")
		b.Flush()
		time.Sleep(batchTime) // the timer finds nothing left
		want := []string{
			`{"level":"info","message":"1"}` + "\n" + `{"level":"info","message":"2"}` + "\n",
			`{"level":"info","message":"3"}` + "\n" + `{"level":"warn","message":"4"}` + "\n",
			`{"level":"info","message":"5"}` + "\n",
		}
		got := out.all()
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("write %d is %q, want %q", i, got[i], want[i])
			}
		}
	})
}

// writes keeps each write by itself.
type writes struct {
	mu   sync.Mutex
	seen []string
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, string(bytes.Clone(b)))
	return len(b), nil
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen...)
}
