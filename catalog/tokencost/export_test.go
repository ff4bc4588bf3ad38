package tokencost

// For the tests beside this file: the pieces that Count is made of.
var (
	CountText  = count
	AppendTool = appendTool
	Piece      = piece
)

// MaxPiece is the length beyond which a piece is counted in parts.
const MaxPiece = maxPiece

// Tokens returns the tokens in the order of their ranks.
func Tokens() [][]byte { return tokensOf([]byte(table)) }
