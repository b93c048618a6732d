//go:build race

package cli

// crashStride is how many journal writes lie between two kills of TestCrash. Under the race detector a walk takes several times
// as long, and it is the code's data races that are looked for: not at every write.
const crashStride = 10
