package tokencost

import _ "embed"

// table is cl100k_base: 100,256 byte strings, each with its rank. The file is read where
// it lies in the program, so that counting needs no start-up and next to no memory: maps
// of the same content take 11 MB, much of what a serving process may have.
//
// It begins with slots of four bytes, little-endian, where hash(token) leads: twelve bits
// of the hash and, below them, the twenty bits of an offset. There, a byte has the token's
// length, three its rank, and the token follows. A slot of zero is free; a token whose
// slot is taken has the next free one.
//
// Made by the test beside it from cl100k_base.tiktoken of OpenAI's tiktoken (MIT licence,
// Copyright (c) 2022 OpenAI, Shantanu Jain), https://github.com/openai/tiktoken.
//
//go:embed cl100k.bin
var table string

const (
	slots      = 1 << 17
	offsetBits = 20
	offsetMask = 1<<offsetBits - 1
	headSize   = 4   // bytes in front of a token
	maxToken   = 128 // bytes of the longest token
)

// rankOf returns the rank of a token; false if piece is none.
func rankOf(piece []byte) (rank uint32, ok bool) {
	if len(piece) > maxToken {
		return 0, false
	}
	h := hash(piece)
	for slot := h % slots; ; slot = (slot + 1) % slots {
		found := word(int(slot) * 4)
		if found == 0 {
			return 0, false
		}
		if found>>offsetBits != h>>offsetBits {
			continue
		}
		at := slots*4 + int(found&offsetMask)
		head := word(at)
		if int(head&0xff) == len(piece) && table[at+headSize:at+headSize+len(piece)] == string(piece) {
			return head >> 8, true
		}
	}
}

// word returns the four bytes of the table at an offset.
func word(at int) uint32 {
	s := table[at : at+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// hash is FNV-1a.
func hash(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}
