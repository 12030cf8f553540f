// Package promqltest runs inside Prometheus: this file is copied next to its sources, and queries its engine with its
// own TSDB.
//
// PROMQL_IN names a JSON list of cases: series (`load` in Prometheus's notation for unit tests), and queries with the
// second at which each is evaluated. PROMQL_OUT names the file for the results, in the same order: vectors, or the
// error.
package promqltest

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

type promqlQuery struct {
	Expression string `json:"expr"`
	Seconds    int64  `json:"seconds"`
}

type promqlCase struct {
	Load    string        `json:"load"`
	Queries []promqlQuery `json:"queries"`
}

type promqlSample struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

type promqlAnswer struct {
	Samples []promqlSample `json:"samples"`
	Error   string         `json:"error,omitempty"`
}

func TestPromql(t *testing.T) {
	var cases []promqlCase
	given, err := os.ReadFile(os.Getenv("PROMQL_IN"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(given, &cases))
	engine := NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	answers := make([][]promqlAnswer, 0, len(cases))
	for _, each := range cases {
		answers = append(answers, ask(t, engine, each))
	}
	written, err := json.Marshal(answers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(os.Getenv("PROMQL_OUT"), written, 0o600))
}

func ask(t *testing.T, engine *promql.Engine, each promqlCase) []promqlAnswer {
	loaded := LoadedStorage(t, each.Load)
	defer loaded.Close()
	answers := make([]promqlAnswer, 0, len(each.Queries))
	for _, query := range each.Queries {
		answers = append(answers, evaluate(engine, loaded, query))
	}
	return answers
}

func evaluate(engine *promql.Engine, queryable storage.Queryable, query promqlQuery) promqlAnswer {
	prepared, err := engine.NewInstantQuery(context.Background(), queryable, nil, query.Expression, time.Unix(query.Seconds, 0))
	if err != nil {
		return promqlAnswer{Error: err.Error()}
	}
	defer prepared.Close()
	result := prepared.Exec(context.Background())
	vector, err := result.Vector()
	if err != nil {
		return promqlAnswer{Error: err.Error()}
	}
	samples := make([]promqlSample, 0, len(vector))
	for _, sample := range vector {
		samples = append(samples, promqlSample{Labels: sample.Metric.Map(), Value: sample.F})
	}
	return promqlAnswer{Samples: samples}
}
