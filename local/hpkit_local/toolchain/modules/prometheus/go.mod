module hpkit.local/prometheus

go 1.26.0

require github.com/prometheus/prometheus v0.308.0
