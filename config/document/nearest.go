package document

import (
	"fmt"
	"strings"
)

// correct says which of the known keys is meant by a wrong one.
func correct(wrong string, known []string) string {
	if near := nearest(wrong, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "want " + or(known)
}

// or lists options as in "a, b or c".
func or(options []string) string {
	last := len(options) - 1
	if last < 1 {
		return strings.Join(options, "")
	}
	return strings.Join(options[:last], ", ") + " or " + options[last]
}

// nearest returns the option that got is a misspelling of, or "".
func nearest(got string, options []string) string {
	const longest = 40 // no key comes near
	if len(got) > longest {
		return ""
	}
	folded, best, found := fold(got), 1+max(1, len(got)/4), ""
	for _, option := range options {
		if d := distance(folded, fold(option)); d < best {
			best, found = d, option
		}
	}
	return found
}

// fold makes maxSize and max-size one with max_size.
func fold(key string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
}

// distance counts the characters to add, drop, replace or swap with a neighbour.
func distance(a, b string) int {
	above, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var before []int // two rows up
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
