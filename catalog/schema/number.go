package schema

import (
	"math/big"
	"strconv"
	"strings"
)

// A decimal is the exact value of a JSON number: 0.DIGITS times ten to the power of
// exp. It takes no more room than the text, however large the exponent is.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; "" is zero
	exp      int64
	vast     bool // the exponent was too long to be read: only its sign is known
}

// parseDecimal reads a number in the syntax of JSON.
func parseDecimal(s string) decimal {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits = strings.TrimLeft(whole+fraction, "0")
	d.exp = int64(len(whole) - (len(whole) + len(fraction) - len(d.digits)))
	d.digits = strings.TrimRight(d.digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	shift, vast := parseExponent(exponent)
	d.exp, d.vast = d.exp+shift, vast
	return d
}

// longest is how many digits of an exponent are read. The values of longer ones cannot
// be told apart; nothing in the world is that large.
const longest = 17

func parseExponent(s string) (exp int64, vast bool) {
	s, negative := strings.CutPrefix(s, "-")
	if s = strings.TrimLeft(s, "+0"); len(s) > longest {
		s, vast = strings.Repeat("9", longest), true
	}
	exp, _ = strconv.ParseInt(s, 10, 64) // "" is 0
	if negative {
		exp = -exp
	}
	return exp, vast
}

// compare returns -1, 0 or 1.
func (d decimal) compare(e decimal) int {
	if d.negative != e.negative {
		if d.negative {
			return -1
		}
		return 1
	}
	order := 0
	switch {
	case d.digits == "" || e.digits == "":
		order = min(len(d.digits), 1) - min(len(e.digits), 1)
	case d.exp < e.exp:
		order = -1
	case d.exp > e.exp:
		order = 1
	default:
		order = strings.Compare(d.digits, e.digits)
	}
	if d.negative {
		return -order
	}
	return order
}

// whole reports whether the value is an integer.
func (d decimal) whole() bool { return d.exp >= int64(len(d.digits)) }

// canonical appends a text that equal numbers share. raw is how it was written.
func (d decimal) canonical(dst []byte, raw string) []byte {
	if d.vast {
		return append(dst, raw...)
	}
	if d.negative {
		dst = append(dst, '-')
	}
	dst = append(append(dst, '.'), d.digits...)
	return strconv.AppendInt(append(dst, 'e'), d.exp, 10)
}

// maxDigits is how long numbers may be of which a common multiple is sought.
const maxDigits = 300

// commonMultiple returns the least common multiple of two positive integers, spelled
// like the one that it equals, if any; false if they are none, or too long.
func commonMultiple(a, b string) (string, bool) {
	x, ok := parseDecimal(a).integer()
	y, both := parseDecimal(b).integer()
	if !ok || !both {
		return "", false
	}
	multiple := new(big.Int).Mul(new(big.Int).Quo(x, new(big.Int).GCD(nil, nil, x, y)), y)
	switch {
	case multiple.Cmp(x) == 0:
		return a, true
	case multiple.Cmp(y) == 0:
		return b, true
	}
	return multiple.String(), true
}

func (d decimal) integer() (*big.Int, bool) {
	if d.negative || d.digits == "" || !d.whole() || d.exp > maxDigits {
		return nil, false
	}
	return new(big.Int).SetString(d.digits+strings.Repeat("0", int(d.exp)-len(d.digits)), 10)
}
