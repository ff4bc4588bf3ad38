package tokencost

import "context"

// maxPiece bounds the memory that one piece takes. A longer one, which no text that was
// written for reading has, is counted in parts of this size; each cut may cost a token.
const maxPiece = 16 << 10

// checkEvery is the number of bytes that are counted between two looks at the context.
const checkEvery = 64 << 10

// count returns the number of tokens in text. Its time is linear in the text's length but
// for the logarithm of the longest piece's.
func count(ctx context.Context, text []byte) (int, error) {
	var m merger
	tokens, unchecked := 0, checkEvery
	for len(text) > 0 {
		if unchecked >= checkEvery {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			unchecked = 0
		}
		n := piece(text[:min(len(text), maxPiece)])
		tokens += m.count(text[:n])
		text = text[n:]
		unchecked += n
	}
	return tokens, nil
}

// A merger counts the tokens of pieces. It starts from single bytes and merges, again and
// again, the neighbours that together are the token of the lowest rank, the left ones
// first if there are several. It is used again to save its memory.
type merger struct {
	parts []part
	queue []uint64 // a heap of rank<<32 | start of the left neighbour
}

// A part stands at the index of its first byte.
type part struct {
	prev, next int32  // the starts of its neighbours; -1 before the first
	rank       uint32 // of the token it makes with the next one, or none
}

const none = ^uint32(0)

func (m *merger) count(piece []byte) int {
	if _, whole := rankOf(piece); whole {
		return 1
	}
	m.start(piece)
	tokens := len(piece)
	for len(m.queue) > 0 {
		head := m.pop()
		at := int32(uint32(head))
		p := &m.parts[at]
		if uint64(p.rank) != head>>32 {
			continue // merged since
		}
		tokens--
		gone := &m.parts[p.next]
		gone.rank = none
		p.next = gone.next
		if int(p.next) < len(piece) {
			m.parts[p.next].prev = at
		}
		m.rank(piece, at)
		if p.prev >= 0 {
			m.rank(piece, p.prev)
		}
	}
	return tokens
}

// start makes each byte a part.
func (m *merger) start(piece []byte) {
	m.parts, m.queue = m.parts[:0], m.queue[:0]
	for i := range piece {
		m.parts = append(m.parts, part{prev: int32(i) - 1, next: int32(i) + 1})
	}
	for i := range piece {
		m.rank(piece, int32(i))
	}
}

// rank looks up what a part makes with the next one, and queues it.
func (m *merger) rank(piece []byte, at int32) {
	p := &m.parts[at]
	p.rank = none
	if int(p.next) >= len(piece) {
		return
	}
	if rank, ok := rankOf(piece[at:m.parts[p.next].next]); ok {
		p.rank = rank
		m.push(uint64(rank)<<32 | uint64(at))
	}
}

func (m *merger) push(item uint64) {
	m.queue = append(m.queue, item)
	q := m.queue
	for i := len(q) - 1; i > 0; {
		above := (i - 1) / 2
		if q[above] <= q[i] {
			return
		}
		q[above], q[i] = q[i], q[above]
		i = above
	}
}

func (m *merger) pop() uint64 {
	q := m.queue
	least := q[0]
	last := len(q) - 1
	q[0] = q[last]
	q = q[:last]
	m.queue = q
	for i := 0; ; {
		below := 2*i + 1
		if below >= last {
			return least
		}
		if right := below + 1; right < last && q[right] < q[below] {
			below = right
		}
		if q[i] <= q[below] {
			return least
		}
		q[i], q[below] = q[below], q[i]
		i = below
	}
}
