package tokencost

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"testing"
)

var from = flag.String("from", "", "write cl100k.bin from this cl100k_base.tiktoken")

// published is the SHA-256 of cl100k_base.tiktoken that OpenAI's tiktoken asks for.
const published = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

// The table must hold exactly what OpenAI publishes: the file is made anew from it.
func TestTableIsTheOneThatIsPublished(t *testing.T) {
	if *from != "" {
		writeTable(t)
		return
	}
	tokens := tokensOf([]byte(table))
	var file bytes.Buffer
	for rank, token := range tokens {
		fmt.Fprintf(&file, "%s %d\n", base64.StdEncoding.EncodeToString(token), rank)
	}
	if sum := sha256.Sum256(file.Bytes()); hex.EncodeToString(sum[:]) != published {
		t.Errorf("the table holds another file, of SHA-256 %x", sum)
	}
	if !bytes.Equal(makeTable(tokens), []byte(table)) {
		t.Error("the table is laid out otherwise than makeTable does")
	}
	for want, token := range tokens {
		if got, ok := rankOf(token); !ok || int(got) != want {
			t.Fatalf("rankOf(%q) = %d, %v, want %d", token, got, ok, want)
		}
	}
}

func writeTable(t *testing.T) {
	file, err := os.ReadFile(*from)
	if err != nil {
		t.Fatal(err)
	}
	var tokens [][]byte
	for line := range bytes.Lines(file) {
		token, err := base64.StdEncoding.DecodeString(string(bytes.Fields(line)[0]))
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if err := os.WriteFile("cl100k.bin", makeTable(tokens), 0o644); err != nil {
		t.Fatal(err)
	}
}

// makeTable lays tokens, in the order of their ranks, out as table.go says.
func makeTable(tokens [][]byte) []byte {
	out := make([]byte, slots*4+1) // no token is at offset 0, so that no slot in use is 0
	for rank, token := range tokens {
		h := hash(token)
		slot := h % slots
		for binary.LittleEndian.Uint32(out[slot*4:]) != 0 {
			slot = (slot + 1) % slots
		}
		binary.LittleEndian.PutUint32(out[slot*4:], h>>offsetBits<<offsetBits|uint32(len(out)-slots*4))
		out = binary.LittleEndian.AppendUint32(out, uint32(rank)<<8|uint32(len(token)))
		out = append(out, token...)
	}
	return out
}

// tokensOf reads a table back, in the order of its ranks, which is that of its bytes.
func tokensOf(table []byte) (tokens [][]byte) {
	for at := slots*4 + 1; at < len(table); {
		head := binary.LittleEndian.Uint32(table[at:])
		end := at + headSize + int(head&0xff)
		tokens = append(tokens, table[at+headSize:end])
		at = end
	}
	return tokens
}
