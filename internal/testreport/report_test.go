package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		events string
		good   bool
		want   []string
		absent []string
	}{
		{
			name: "a passing package prints its line and no noise",
			events: `{"Action":"run","Package":"snap","Test":"TestA"}
{"Action":"output","Package":"snap","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"snap","Test":"TestA","Output":"    a_test.go:1: chatter\n"}
{"Action":"pass","Package":"snap","Test":"TestA"}
{"Action":"output","Package":"snap","Output":"PASS\n"}
{"Action":"output","Package":"snap","Output":"ok  \tsnap\t0.1s\n"}
{"Action":"pass","Package":"snap"}
`,
			good:   true,
			want:   []string{"ok  \tsnap\t0.1s\n", "1 passed, 0 failed, 0 skipped"},
			absent: []string{"=== RUN", "PASS\n", "chatter", "skipped:"},
		},
		{
			name: "a skipped test is named with its reason",
			events: `{"Action":"output","Package":"snap/x","Test":"TestPG","Output":"    pg_test.go:12: needs PostgreSQL: no initdb\n"}
{"Action":"output","Package":"snap/x","Test":"TestPG","Output":"--- SKIP: TestPG (0.00s)\n"}
{"Action":"skip","Package":"snap/x","Test":"TestPG"}
{"Action":"pass","Package":"snap/x"}
`,
			good: true,
			want: []string{"\nskipped:\n--- SKIP: snap/x TestPG: needs PostgreSQL: no initdb\n",
				"0 passed, 0 failed, 1 skipped"},
		},
		{
			name: "a failing test prints all it said",
			events: `{"Action":"output","Package":"snap","Test":"TestA","Output":"    a_test.go:9: got 1, want 2\n"}
{"Action":"output","Package":"snap","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"snap","Test":"TestA"}
{"Action":"output","Package":"snap","Output":"FAIL\tsnap\t0.1s\n"}
{"Action":"fail","Package":"snap"}
`,
			want: []string{"got 1, want 2", "--- FAIL: TestA", "FAIL\tsnap", "0 passed, 1 failed"},
		},
		{
			name: "a test that never ended is shown",
			events: `{"Action":"output","Package":"snap","Test":"TestHang","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"snap"}
`,
			want: []string{"--- UNFINISHED: TestHang\npanic: test timed out"},
		},
		{
			name: "a test that never ended and printed nothing is shown",
			events: `{"Action":"run","Package":"snap","Test":"TestQuiet"}
{"Action":"run","Package":"snap","Test":"TestA"}
{"Action":"pass","Package":"snap","Test":"TestA"}
{"Action":"fail","Package":"snap"}
`,
			want: []string{"--- UNFINISHED: TestQuiet\n", "1 passed"},
		},
		{
			name: "a package that does not build fails the run",
			events: `{"ImportPath":"snap/y","Action":"build-output","Output":"y.go:1:1: syntax error\n"}
{"ImportPath":"snap/y","Action":"build-fail"}
`,
			want: []string{"syntax error"},
		},
		{name: "other lines pass through", events: "go: downloading x\n", good: true,
			want: []string{"go: downloading x\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(tt.events)); err != nil {
				t.Fatal(err)
			}
			if good := r.finish(); good != tt.good {
				t.Errorf("good = %v, want %v", good, tt.good)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the report lacks %q:\n%s", want, out.String())
				}
			}
			for _, absent := range tt.absent {
				if strings.Contains(out.String(), absent) {
					t.Errorf("the report should not have %q:\n%s", absent, out.String())
				}
			}
		})
	}
}
