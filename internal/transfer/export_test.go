package transfer

// InPieces returns options that fetch ranges of n bytes.
func InPieces(o Options, n int64) Options {
	o.piece = n
	return o
}
