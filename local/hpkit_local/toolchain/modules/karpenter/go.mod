module hpkit.local/karpenter

go 1.26.0

require sigs.k8s.io/karpenter v1.15.0
