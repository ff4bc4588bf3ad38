package tokencost_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"

	"github.com/mainstem-mcp/mainstem/catalog/tokencost"
)

// The pattern that cl100k_base splits a text with.
const pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// An oracle counts with the library that others use. It holds 11 MB of maps and makes
// 28 MB to load them, which is why the program does without.
func oracle(t testing.TB) *tiktoken.Tiktoken {
	t.Helper()
	ranks := map[string]int{}
	for rank, token := range tokencost.Tokens() {
		ranks[string(token)] = rank
	}
	core, err := tiktoken.NewCoreBPE(ranks, nil, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return tiktoken.NewTiktoken(core, nil, nil)
}

func sameAsOracle(t *testing.T, o *tiktoken.Tiktoken, text string) {
	t.Helper()
	// ſ: the library does not know that it is an s to those who ignore case.
	if !utf8.ValidString(text) || strings.Contains(text, "ſ") || len(text) > tokencost.MaxPiece {
		return
	}
	if got, want := countText(t, text), len(o.EncodeOrdinary(text)); got != want {
		t.Errorf("%q has %d tokens, want %d", text, got, want)
	}
}

func TestCountsAreThoseOfTheLibrary(t *testing.T) {
	o := oracle(t)
	for _, text := range []string{
		"I'M YOU'RE we've 'd'Ll 'x ''s '", "a  b   c\td\n\n e \r\n\r\n f  ", " \n \n x", "\u00a0\u00a0x\u3000\u3000", "½²12345六", "हिन्दी में", "…—!!\n\n?", "  ", "x  ",
		"<|endoftext|><|fim_prefix|>", strings.Repeat("ab", 500), strings.Repeat("=", 999), strings.Repeat("\\n", 99), "\x00\x01\x7f", "👨‍👩‍👧 e\u0301",
	} {
		sameAsOracle(t, o, text)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", "B", "é", "漢", "1", "½", " ", "  ", "\t", "\n", "\r", "\u00a0", "\u2028", "'", "'s", "'LL", "re", "!", "{\"", "\":", "\u0301", "🚀", "the", "Schema", "_", "-", ".", "/"}
	for range 3000 {
		var text strings.Builder
		for range 1 + rng.IntN(40) {
			text.WriteString(parts[rng.IntN(len(parts))])
		}
		sameAsOracle(t, o, text.String())
	}
}

func FuzzCount(f *testing.F) {
	for _, row := range readVectors(f).Tools {
		f.Add(row.Text)
	}
	f.Add("\xff\xfe'\u00e5")
	o := oracle(f)
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		for rest := []byte(text); len(rest) > 0; n++ {
			size := tokencost.Piece(rest)
			if size < 1 || size > len(rest) {
				t.Fatalf("%q: a piece of %d bytes", rest, size)
			}
			rest = rest[size:]
		}
		if got := countText(t, text); got < n && len(text) <= tokencost.MaxPiece || got > len(text) {
			t.Fatalf("%q: %d tokens in %d pieces", text, got, n)
		}
		sameAsOracle(t, o, text)
	})
}
