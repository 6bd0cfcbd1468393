package login

import (
	"strings"
	"testing"

	"rsc.io/qr"
)

// U5: the drawing is the code, module by module.
func TestQR(t *testing.T) {
	t.Parallel()
	const text = "https://cloud.example/auth/device?user_code=BCDF-GHJK"
	want, err := qr.Encode(text, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(QR(text), "\n"), "\n")
	if len(lines) != (want.Size+5)/2 {
		t.Fatalf("%d lines for %d modules", len(lines), want.Size)
	}
	dark := map[rune][2]bool{'█': {true, true}, '▀': {true, false}, '▄': {false, true}, ' ': {false, false}}
	for i, line := range lines {
		row := []rune(strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[30;107m"), "\x1b[0m"))
		if len(row) != want.Size+4 {
			t.Fatalf("line %d has %d columns", i, len(row))
		}
		for x, r := range row {
			for half := range 2 {
				if dark[r][half] != want.Black(x-2, 2*i-2+half) {
					t.Fatalf("module %d,%d is wrong", x-2, 2*i-2+half)
				}
			}
		}
	}
	if QR(strings.Repeat("x", 5000)) != "" {
		t.Error("a text that does not fit was drawn")
	}
}
