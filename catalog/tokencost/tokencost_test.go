package tokencost_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog/tokencost"
)

// The rows of testdata/tokens.json.
type vectors struct {
	Tools []struct {
		ID, Title, Public, Text string
		Tokens                  int
	}
	Sums []struct {
		ID     string
		Texts  []string
		Tokens int
	}
	Strings []struct {
		ID, Text string
		Tokens   int
	}
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// cost is what Count says of a tool as it is listed.
func cost(t *testing.T, c *tokencost.Counter, text string) int {
	t.Helper()
	var tool struct {
		Name, Description string
		InputSchema       json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &tool); err != nil {
		t.Fatal(err)
	}
	n, err := c.Count(context.Background(), tool.Name, tool.Description, tool.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func countText(t testing.TB, text string) int {
	t.Helper()
	n, err := tokencost.CountText(context.Background(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	c := tokencost.New(10)
	for _, row := range v.Tools {
		for range 2 { // counted, and remembered
			if got := cost(t, c, row.Text); got != row.Tokens {
				t.Errorf("%s %s: Count of %s = %d, want %d", row.ID, row.Title, row.Text, got, row.Tokens)
			}
		}
	}
	for _, row := range v.Sums {
		sum := 0
		for _, text := range row.Texts {
			sum += cost(t, c, text)
		}
		if sum != row.Tokens {
			t.Errorf("%s: the sum is %d, want %d", row.ID, sum, row.Tokens)
		}
	}
	for _, row := range v.Strings {
		if got := countText(t, row.Text); got != row.Tokens {
			t.Errorf("%s: %q has %d tokens, want %d", row.ID, row.Text, got, row.Tokens)
		}
	}
}

func TestTextThatIsCounted(t *testing.T) {
	for _, c := range []struct{ name, description, schema, want string }{
		{"a", "", `{}`, `{"name":"a","description":"","inputSchema":{}}`},
		{"a", "<b> & \u2028 \"\\\n\t\r\b\f\x01\x7f\xff", "{ \"a b\" :\n [1.50, 1e400 , true ] }",
			`{"name":"a","description":"<b> & ` + "\u2028" + ` \"\\\n\t\r\b\f\u0001` + "\x7f\ufffd" + `","inputSchema":{"a b":[1.50,1e400,true]}}`},
		{"a", "", `{"\u6f22":"\ud83d\ude80 \/ \" \\ \u000a \\u0041"}`, `{"name":"a","description":"","inputSchema":{"漢":"🚀 / \" \\ \n \\u0041"}}`},
		{"a", "", `{"broken`, `{"name":"a","description":"","inputSchema":{"broken}`},
	} {
		if got := tokencost.AppendTool(nil, c.name, c.description, json.RawMessage(c.schema)); string(got) != c.want {
			t.Errorf("text of %q %q %s\n got %s\nwant %s", c.name, c.description, c.schema, got, c.want)
		}
	}
}

func TestCountEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := tokencost.New(0)
	if _, err := c.Count(ctx, "a", "b", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Count = %v, want that it was cancelled", err)
	}
}

func TestCountFromManyGoroutines(t *testing.T) {
	v := readVectors(t)
	c := tokencost.New(2) // so that counts are forgotten too
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				for _, row := range v.Tools {
					if got := cost(t, c, row.Text); got != row.Tokens {
						t.Errorf("%s: %d, want %d", row.ID, got, row.Tokens)
					}
				}
			}
		})
	}
	wg.Wait()
}

// Text that no one wrote to be read must not take the time of its square.
func TestLongRunsAreCountedInLinearTime(t *testing.T) {
	const size = 128 << 10
	for _, unit := range []string{"a", "ab", " ", "\n", "\n ", "é", "漢字", "=", "-_", "1", "\u00a0", "'s", "!\r"} {
		text := strings.Repeat(unit, size/len(unit))
		start := time.Now()
		n := countText(t, text)
		// Half a second is usual under the race detector; the square takes minutes.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%d bytes of %q took %v", size, unit, took)
		}
		if n < size/tokencost.MaxPiece || n > size {
			t.Errorf("%d bytes of %q have %d tokens", size, unit, n)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	v := readVectors(b)
	text := []byte(v.Tools[2].Text)
	b.Run("tool", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := tokencost.CountText(context.Background(), text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		c := tokencost.New(1)
		for b.Loop() {
			if _, err := c.Count(context.Background(), "a", "b", text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
