package naming

import "strconv"

// A register holds the names that are taken, and numbers those that come too late.
type register struct {
	sep   byte // stands before a number
	size  int  // of a numbered name at most; 0 means any
	taken map[string]struct{}
	next  map[series]int // the number to try next: all before it are taken for good
}

// A series is all numbers of the same count of digits on the same (folded) name.
// Names are cut by the number's length, so only within a series does the rest of the
// name stay the same, and only there may one search go on where another ended.
type series struct {
	head   string
	digits int
}

func newRegister(sep byte, size, names int) *register {
	return &register{
		sep:   sep,
		size:  size,
		taken: make(map[string]struct{}, names),
		next:  make(map[series]int),
	}
}

// claim takes the name if no equal one is taken.
func (r *register) claim(name string) bool {
	key := fold(name)
	if _, taken := r.taken[key]; taken {
		return false
	}
	r.taken[key] = struct{}{}
	return true
}

// number takes the first free of name_2, name_3, …, cut to size.
func (r *register) number(name string) string {
	low, high := 2, 10
	for digits := 1; ; digits++ {
		head := name
		if room := r.size - digits - 1; r.size > 0 && len(head) > room {
			head = head[:room]
		}
		s := series{fold(head), digits}
		for n := max(low, r.next[s]); n < high; n++ {
			numbered := head + string(r.sep) + strconv.Itoa(n)
			if r.claim(numbered) {
				r.next[s] = n + 1
				return numbered
			}
		}
		r.next[s] = high
		low, high = high, high*10
	}
}
