// Package deploy is what joinbench is deployed with: compose.yaml's parts and a dashboard. This test keeps them fitting together.
package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"joinbench/config"
)

// exported reads metrics.txt.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			if len(f) < 2 || (f[1] == "counter") != strings.HasSuffix(f[0], "_total") {
				t.Fatalf("metrics.txt: %q: name, type (counter with _total, gauge or histogram), labels", line)
			}
			switch f[1] {
			case "counter", "gauge":
				names[f[0]] = true
			case "histogram":
				names[f[0]+"_bucket"], names[f[0]+"_sum"], names[f[0]+"_count"] = true, true, true
			default:
				t.Errorf("metrics.txt: %q: unknown type", line)
			}
		}
	}
	return names
}

var metric = regexp.MustCompile(`\bjoinbench_[a-z0-9_]+`)

// TestDashboard: the dashboard asks for metrics that exist, from the source that is provisioned.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("grafana/dashboards/joinbench.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title      string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	var sources struct {
		Datasources []struct{ UID string }
	}
	parse(t, "grafana/provisioning/datasources/prometheus.yml", &sources)
	names, asked := exported(t), 0
	for _, p := range dashboard.Panels {
		if len(sources.Datasources) != 1 || p.Datasource.UID != sources.Datasources[0].UID {
			t.Errorf("panel %q asks %q, provisioned is %v", p.Title, p.Datasource.UID, sources.Datasources)
		}
		for _, target := range p.Targets {
			for _, name := range metric.FindAllString(target.Expr, -1) {
				asked++
				if !names[name] {
					t.Errorf("panel %q asks for %s, which is not in metrics.txt", p.Title, name)
				}
			}
		}
	}
	if asked < 10 {
		t.Errorf("the dashboard asks for %d metrics: this test does not see them", asked)
	}
}

func parse(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestCompose: all ports are on loopback, all files that are mounted exist, services wait for services that exist and, if it is their health, for
// such as tell it, and Prometheus asks joinbench where it listens.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image, Build string
			Ports        []string
			Volumes      []string
			Command      []string
			Healthcheck  struct{ Test []string }
			DependsOn    map[string]struct{ Condition string } `yaml:"depends_on"`
		}
		Volumes map[string]any
	}
	parse(t, "../compose.yaml", &compose)
	for _, want := range []string{"kafka", "topics", "joinbench", "prometheus", "grafana"} {
		if _, ok := compose.Services[want]; !ok {
			t.Errorf("no service %s", want)
		}
	}
	for name, s := range compose.Services {
		if s.Build == "" && (!strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest")) {
			t.Errorf("%s: image %q names no version", name, s.Image)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is not on loopback alone", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := compose.Volumes[from]
			if _, err := os.Stat(filepath.Join("..", from)); err != nil && !named {
				t.Errorf("%s: volume %s is neither named nor a file", name, v)
			}
		}
		for other, on := range s.DependsOn {
			if of, ok := compose.Services[other]; !ok || on.Condition == "service_healthy" && len(of.Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s (%s), which does not exist or tells no health", name, other, on.Condition)
			}
		}
	}
	var prometheus struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	parse(t, "prometheus.yml", &prometheus)
	target := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets[0]
	if host, port, _ := strings.Cut(target, ":"); host != "joinbench" || !strings.Contains(strings.Join(compose.Services[host].Command, " "), "0.0.0.0:"+port) {
		t.Errorf("Prometheus asks %s, joinbench is started with %v", target, compose.Services["joinbench"].Command)
	}
}

// TestJoinFile: the configuration is one that serve takes, and compose.yaml has its broker and makes its topics.
func TestJoinFile(t *testing.T) {
	data, err := os.ReadFile("join.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := config.Parse(data, "join.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := conf.ValidateServe(); err != nil {
		t.Error(err)
	}
	compose, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`for topic in ([a-z ]+);`).FindSubmatch(compose)
	if made == nil {
		t.Fatal("compose.yaml makes no topics")
	}
	for _, topic := range []string{conf.A.Topic, conf.B.Topic, conf.Output.Topic, conf.Topics.Late, conf.Topics.Dead} {
		if !slices.Contains(strings.Fields(string(made[1])), topic) {
			t.Errorf("topic %s is not among those that compose.yaml makes: %s", topic, made[1])
		}
	}
	for _, broker := range conf.Kafka.Brokers {
		if !strings.Contains(string(compose), ",INSIDE://"+broker+"\n") {
			t.Errorf("the broker %s is not what compose.yaml's Kafka tells containers", broker)
		}
	}
}
