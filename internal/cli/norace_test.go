//go:build !race

package cli

// crashStride is how many journal writes lie between two kills of TestCrash: every single one.
const crashStride = 1
