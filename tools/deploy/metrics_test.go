// Package deploy_test checks the files of the folder deploy and .goreleaser.yaml with the parsers
// of the programs that read them: Prometheus (also for Grafana's queries), Docker, Compose, Helm,
// Kubernetes and GoReleaser. `make lint-deploy` runs it. It needs no container engine, no cluster
// and no network.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// root is the root of the repository.
const root = "../.."

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fromElsewhere are metrics from Go's client library or Prometheus.
var fromElsewhere = []string{
	"up", "go_goroutines", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
	"process_max_fds",
}

// given are the labels that Prometheus adds.
var given = []string{"job", "instance", "__name__"}

// metrics returns the documented metrics with their labels. A test of the program compares the
// document with the metrics that it serves.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, name := range fromElsewhere {
		all[name] = given
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:snapcloud|go_sql)_[a-z0-9_]+)` \\| ([^|]*) \\| "+
		"([a-z0-9]+)").FindAllStringSubmatch(read(t, "docs/operations.md"), -1) {
		name, has := row[1],
			slices.Concat(strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' }),
				given)
		if row[3] == "histogram" {
			all[name+"_bucket"], all[name+"_count"], all[name+"_sum"] = append(has, "le"), has, has
			continue
		}
		all[name] = has
	}
	if len(all) < 30 {
		t.Fatalf("docs/operations.md has only %d metrics", len(all))
	}
	return all
}

// wrongIn parses an expression and returns the metrics and labels in it that do not exist.
func wrongIn(t *testing.T, expr string, exist map[string][]string) (wrong []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return []string{err.Error()}
	}
	known := map[string]bool{}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			has, exists := exist[v.Name]
			if !exists {
				wrong = append(wrong, "there is no metric "+v.Name)
			}
			for _, name := range has {
				known[name] = true
			}
			wrong = append(wrong, unknownLabels(v.LabelMatchers, has)...)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if a, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range a.Grouping {
				if !known[label] {
					wrong = append(wrong, "no metric of it has the label "+label)
				}
			}
		}
		return nil
	})
	return wrong
}

func unknownLabels(matchers []*labels.Matcher, has []string) (wrong []string) {
	for _, m := range matchers {
		if has != nil && !slices.Contains(has, m.Name) {
			wrong = append(wrong, "there is no label "+m.Name)
		}
	}
	return wrong
}

// TestDashboard checks that every query of the dashboard is valid PromQL and uses metrics and
// labels that the program has.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/grafana/snapcloud.json")), &board); err != nil {
		t.Fatal(err)
	}
	exist, asked := metrics(t), 0
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$job", "snapcloud")
	shown := ""
	for _, panel := range board.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			asked++
			shown += target.Expr
			for _, wrong := range wrongIn(t, variables.Replace(target.Expr), exist) {
				t.Errorf("panel %q, %s: %s", panel.Title, target.Expr, wrong)
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d queries", asked)
	}
	for name := range exist {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		if strings.HasPrefix(name, "snapcloud_") && !strings.Contains(shown, base) {
			t.Errorf("the dashboard does not show %s", base)
		}
	}
}

// TestAlerts checks that Prometheus accepts the rules, that their metrics exist, and that each rule
// has a section of the runbook and vice versa. The chart has the same rules.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/prometheus/alerts.yaml")
	if text != read(t, "deploy/helm/snapcloud/files/alerts.yaml") {
		t.Error("the chart's files/alerts.yaml differs from deploy/prometheus/alerts.yaml: copy it")
	}
	groups, problems := rulefmt.Parse([]byte(text), false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Error(problem)
	}
	exist, alerts := metrics(t), map[string]bool{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			alerts[rule.Alert] = true
			for _, wrong := range wrongIn(t, rule.Expr, exist) {
				t.Errorf("%s: %s", rule.Alert, wrong)
			}
			if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s has no summary or no severity", rule.Alert)
			}
			if url := "docs/runbook.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != url {
				t.Errorf("the runbook_url of %s is not %s", rule.Alert, url)
			}
		}
	}
	sections := map[string]bool{}
	for _, section := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(read(t, "docs/runbook.md"), -1) {
		sections[section[1]] = true
		if !alerts[section[1]] {
			t.Errorf("docs/runbook.md has a section %s, which is no alert", section[1])
		}
	}
	for alert := range alerts {
		if !sections[alert] {
			t.Errorf("docs/runbook.md has no section %s", alert)
		}
	}
}

// TestWrongIsFound checks that the checks above can fail.
func TestWrongIsFound(t *testing.T) {
	t.Parallel()
	exist := metrics(t)
	for _, expr := range []string{
		"snapcloud_nothing", "rate(snapcloud_pushes_total", "snapcloud_pushes_total{route=\"x\"}",
		"sum by (route) (snapcloud_pushes_total)", "snapcloud_http_request_duration_seconds",
	} {
		if wrongIn(t, expr, exist) == nil {
			t.Errorf("%s is accepted", expr)
		}
	}
	if wrong := wrongIn(t, "sum by (route, job) (rate(snapcloud_http_requests_total[5m]))", exist); wrong != nil {
		t.Error(wrong)
	}
	if !bytes.Contains([]byte(read(t, "deploy/prometheus/alerts.yaml")), []byte("SnapcloudDown")) {
		t.Error("no alert for a service that is down")
	}
}
