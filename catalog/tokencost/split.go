package tokencost

import (
	"unicode"
	"unicode/utf8"
)

// A class is what the pattern of cl100k_base asks of a character.
type class uint8

const (
	end    class = iota // of the text
	letter              // \p{L}
	number              // \p{N}
	line                // \r \n
	space               // other white space
	mark                // anything else
)

// peek returns the class and size of the character at text[i].
func peek(text []byte, i int) (class, int) {
	if i >= len(text) {
		return end, 0
	}
	r, size := rune(text[i]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(text[i:])
	}
	switch {
	case r == '\r' || r == '\n':
		return line, size
	case unicode.IsLetter(r):
		return letter, size
	case unicode.IsNumber(r):
		return number, size
	case unicode.IsSpace(r):
		return space, size
	}
	return mark, size
}

// piece returns the length of the piece that text, which is not empty, starts with. No
// token reaches over the end of a piece. It does what this pattern does, of which the
// first alternative that fits counts, in one pass:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}{1,3} |
//	?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
func piece(text []byte) int {
	if n := contraction(text); n > 0 {
		return n
	}
	first, size := peek(text, 0)
	second, _ := peek(text, size)
	switch {
	case first == letter:
		return run(text, 0, letter)
	case second == letter && (first == space || first == mark):
		return run(text, size, letter)
	case first == number:
		return numbers(text)
	case first == mark:
		return run(text, run(text, 0, mark), line)
	case text[0] == ' ' && second == mark:
		return run(text, run(text, 1, mark), line)
	}
	return spaces(text)
}

// run returns the index after the characters of a class that start at text[i].
func run(text []byte, i int, of class) int {
	for {
		c, size := peek(text, i)
		if c != of {
			return i
		}
		i += size
	}
}

func numbers(text []byte) int {
	i := 0
	for range 3 {
		c, size := peek(text, i)
		if c != number {
			break
		}
		i += size
	}
	return i
}

// spaces returns the length of a piece of white space: up to the last line end if there
// is one; else up to the last character, which belongs to what follows; but never none.
func spaces(text []byte) int {
	i, last, lines := 0, 0, 0
	for {
		c, size := peek(text, i)
		switch c {
		case line:
			lines = i + size
		case end:
			if lines == 0 {
				return i
			}
			return lines
		case space:
		default:
			switch {
			case lines > 0:
				return lines
			case last > 0:
				return last
			}
			return i
		}
		last = i
		i += size
	}
}

// contraction returns the length of the English ending that text starts with, if any.
func contraction(text []byte) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch string([]byte{text[1] | 0x20, text[2] | 0x20}) {
	case "re", "ve", "ll":
		return 3
	}
	if string(text[1:3]) == "ſ" { // an s to those who ignore case
		return 3
	}
	return 0
}
