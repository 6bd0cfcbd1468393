package transfer

import "time"

// InPieces returns options that fetch ranges of n bytes.
func InPieces(o Options, n int64) Options {
	o.piece = n
	return o
}

// Impatient returns options that give up a request that moves no byte for d.
func Impatient(o Options, d time.Duration) Options {
	o.still = d
	return o
}
