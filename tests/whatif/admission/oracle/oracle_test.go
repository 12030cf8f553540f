// Package scheduler runs inside Kueue: this file is copied next to Kueue's scheduler, and returns its decisions.
//
// ORACLE_IN names a JSON list of cases (the neutral format of tests/whatif/admission/neutral.py), ORACLE_OUT the file
// for the results. Every case runs ORACLE_TIMES times: `answers` contains all different results, because some of
// Kueue's decisions are random.
package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/featuregate"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	"sigs.k8s.io/kueue/pkg/features"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/expectations"
	"sigs.k8s.io/kueue/pkg/util/routine"
	utiltas "sigs.k8s.io/kueue/pkg/util/tas"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	utiltestingapi "sigs.k8s.io/kueue/pkg/util/testing/v1beta2"
	testingnode "sigs.k8s.io/kueue/pkg/util/testingjobs/node"
	"sigs.k8s.io/kueue/pkg/workload"
	workloadevict "sigs.k8s.io/kueue/pkg/workload/evict"
)

const (
	namespace = "default"
	// A run without changes for this many cycles is at rest; a run with this many cycles never will be.
	restCycles = 12
	mostCycles = 400
)

type oracleQuota struct {
	Nominal   float64  `json:"nominal"`
	Borrowing *float64 `json:"borrowing_limit"`
	Lending   *float64 `json:"lending_limit"`
}

type oracleQueue struct {
	Name       string  `json:"name"`
	Cohort     string  `json:"cohort"`
	Queueing   string  `json:"queueing"`
	Weight     float64 `json:"fair_weight"`
	Preemption struct {
		Within  string `json:"within_queue"`
		Reclaim string `json:"reclaim_in_cohort"`
		Borrow  *struct {
			Policy string `json:"policy"`
			Most   *int32 `json:"max_priority_threshold"`
		} `json:"borrow_within_cohort"`
	} `json:"preemption"`
	Fungibility struct {
		Borrow     string  `json:"when_can_borrow"`
		Preempt    string  `json:"when_can_preempt"`
		Preference *string `json:"preference"`
	} `json:"fungibility"`
	Groups []struct {
		Resources []string `json:"resources"`
		Flavors   []struct {
			Name   string                 `json:"name"`
			Quotas map[string]oracleQuota `json:"quotas"`
		} `json:"flavors"`
	} `json:"resource_groups"`
}

type oracleCohort struct {
	Name   string  `json:"name"`
	Parent string  `json:"parent"`
	Weight float64 `json:"fair_weight"`
	Quotas []struct {
		Flavor   string `json:"flavor"`
		Resource string `json:"resource"`
		oracleQuota
	} `json:"quotas"`
}

type oracleWorkload struct {
	Name     string   `json:"name"`
	Queue    string   `json:"queue"`
	Priority int32    `json:"priority"`
	Created  float64  `json:"created_s"`
	Admitted *float64 `json:"admitted_s"`
	Evicted  bool     `json:"evicted"`
	PodSets  []struct {
		Name     string             `json:"name"`
		Count    int32              `json:"count"`
		MinCount *int32             `json:"min_count"`
		PerPod   map[string]float64 `json:"per_pod"`
		Flavors  map[string]string  `json:"flavors"`
		Usage    map[string]float64 `json:"usage"`
		Topology *struct {
			Mode  string `json:"mode"`
			Level string `json:"level"`
		} `json:"topology"`
	} `json:"pod_sets"`
}

// oracleTopology is the topology of all flavors; a node's label "type" names its flavor.
type oracleTopology struct {
	Levels []string `json:"levels"`
	Nodes  []struct {
		Name        string             `json:"name"`
		Labels      map[string]string  `json:"labels"`
		Allocatable map[string]float64 `json:"allocatable"`
		Ready       bool               `json:"ready"`
	} `json:"nodes"`
}

// oracleGang configures gang scheduling: what happens to a workload whose pods aren't ready in time.
type oracleGang struct {
	Timestamp config.RequeuingTimestamp `json:"timestamp"`
	Limit     *int32                    `json:"backoff_limit_count"`
	Base      int32                     `json:"backoff_base_s"`
	Most      int32                     `json:"backoff_max_s"`
}

type oracleStep struct {
	Submit []oracleWorkload `json:"submit"`
	// With Requeue, all workloads that back off return; then this many of a queue have pods that aren't ready in time.
	TimeOut *struct {
		Queue string `json:"queue"`
		Count int    `json:"count"`
	} `json:"time_out"`
	Requeue bool `json:"requeue"`
	Finish  *struct {
		Names []string `json:"names"`
		Queue string   `json:"queue"`
		Count int      `json:"count"`
	} `json:"finish"`
}

type oracleCase struct {
	ID          string          `json:"id"`
	Kind        string          `json:"kind"`
	Gates       map[string]bool `json:"feature_gates"`
	FairSharing *struct {
		Strategies []config.PreemptionStrategy `json:"strategies"`
	} `json:"fair_sharing"`
	Gang     *oracleGang      `json:"wait_for_pods_ready"`
	Topology *oracleTopology  `json:"topology"`
	Cohorts  []oracleCohort   `json:"cohorts"`
	Queues   []oracleQueue    `json:"queues"`
	Running  []oracleWorkload `json:"running"`
	Pending  []oracleWorkload `json:"pending"`
	Steps    []oracleStep     `json:"steps"`
}

type object = map[string]any

func quantity(name string, value float64) resource.Quantity {
	if name == string(corev1.ResourceCPU) {
		return *resource.NewMilliQuantity(int64(value*1000+0.5), resource.DecimalSI)
	}
	return *resource.NewQuantity(int64(value), resource.DecimalSI)
}

func limit(name string, value *float64) *resource.Quantity {
	if value == nil {
		return nil
	}
	found := quantity(name, *value)
	return &found
}

func (q oracleQuota) of(name string) kueue.ResourceQuota {
	return kueue.ResourceQuota{
		Name:           corev1.ResourceName(name),
		NominalQuota:   quantity(name, q.Nominal),
		BorrowingLimit: limit(name, q.Borrowing),
		LendingLimit:   limit(name, q.Lending),
	}
}

func weight(value float64) *kueue.FairSharing {
	found := resource.MustParse(strconv.FormatFloat(value, 'f', -1, 64))
	return &kueue.FairSharing{Weight: &found}
}

func (q oracleQueue) object() *kueue.ClusterQueue {
	made := utiltestingapi.MakeClusterQueue(q.Name).QueueingStrategy(kueue.QueueingStrategy(q.Queueing)).Obj()
	made.Spec.CohortName = kueue.CohortReference(q.Cohort)
	made.Spec.FairSharing = weight(q.Weight)
	borrow := kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever}
	if given := q.Preemption.Borrow; given != nil {
		borrow = kueue.BorrowWithinCohort{
			Policy:               kueue.BorrowWithinCohortPolicy(given.Policy),
			MaxPriorityThreshold: given.Most,
		}
	}
	made.Spec.Preemption = &kueue.ClusterQueuePreemption{
		WithinClusterQueue:  kueue.PreemptionPolicy(q.Preemption.Within),
		ReclaimWithinCohort: kueue.PreemptionPolicy(q.Preemption.Reclaim),
		BorrowWithinCohort:  &borrow,
	}
	made.Spec.FlavorFungibility = &kueue.FlavorFungibility{
		WhenCanBorrow:  kueue.FlavorFungibilityPolicy(q.Fungibility.Borrow),
		WhenCanPreempt: kueue.FlavorFungibilityPolicy(q.Fungibility.Preempt),
	}
	if given := q.Fungibility.Preference; given != nil {
		preference := kueue.FlavorFungibilityPreference(*given)
		made.Spec.FlavorFungibility.Preference = &preference
	}
	for _, group := range q.Groups {
		found := kueue.ResourceGroup{}
		for _, name := range group.Resources {
			found.CoveredResources = append(found.CoveredResources, corev1.ResourceName(name))
		}
		for _, flavor := range group.Flavors {
			quotas := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(flavor.Name)}
			for _, name := range group.Resources {
				quotas.Resources = append(quotas.Resources, flavor.Quotas[name].of(name))
			}
			found.Flavors = append(found.Flavors, quotas)
		}
		made.Spec.ResourceGroups = append(made.Spec.ResourceGroups, found)
	}
	return made
}

func (c oracleCohort) object() *kueue.Cohort {
	made := utiltestingapi.MakeCohort(kueue.CohortReference(c.Name)).Obj()
	made.Spec.ParentName = kueue.CohortReference(c.Parent)
	made.Spec.FairSharing = weight(c.Weight)
	for _, quota := range c.Quotas {
		made.Spec.ResourceGroups = append(made.Spec.ResourceGroups, kueue.ResourceGroup{
			CoveredResources: []corev1.ResourceName{corev1.ResourceName(quota.Resource)},
			Flavors: []kueue.FlavorQuotas{{
				Name:      kueue.ResourceFlavorReference(quota.Flavor),
				Resources: []kueue.ResourceQuota{quota.of(quota.Resource)},
			}},
		})
	}
	return made
}

func (w oracleWorkload) object(zero time.Time) *kueue.Workload {
	at := func(seconds float64) metav1.Time {
		return metav1.NewTime(zero.Add(time.Duration(seconds * float64(time.Second))))
	}
	made := utiltestingapi.MakeWorkload(w.Name, namespace).Queue(kueue.LocalQueueName(w.Queue)).Priority(w.Priority).Obj()
	made.UID = types.UID(w.Name)
	made.CreationTimestamp = at(w.Created)
	made.Spec.PodSets = nil
	admission := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(w.Queue)}
	for _, set := range w.PodSets {
		perPod := maps.Clone(set.PerPod)
		if w.Admitted != nil {
			perPod = map[string]float64{}
			for name, value := range set.Usage {
				perPod[name] = value / float64(max(set.Count, 1))
			}
		}
		wrapper := utiltestingapi.MakePodSet(kueue.PodSetReference(set.Name), int(set.Count))
		for name, value := range perPod {
			found := quantity(name, value)
			wrapper = wrapper.Request(corev1.ResourceName(name), found.String())
		}
		if set.Topology != nil {
			switch set.Topology.Mode {
			case "required":
				wrapper = wrapper.RequiredTopologyRequest(set.Topology.Level)
			case "preferred":
				wrapper = wrapper.PreferredTopologyRequest(set.Topology.Level)
			default:
				wrapper = wrapper.UnconstrainedTopologyRequest()
			}
		}
		podSet := wrapper.Obj()
		podSet.MinCount = set.MinCount
		made.Spec.PodSets = append(made.Spec.PodSets, *podSet)
		assigned := kueue.PodSetAssignment{
			Name:          kueue.PodSetReference(set.Name),
			Count:         &set.Count,
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{},
			ResourceUsage: corev1.ResourceList{},
		}
		for name, flavor := range set.Flavors {
			assigned.Flavors[corev1.ResourceName(name)] = kueue.ResourceFlavorReference(flavor)
			assigned.ResourceUsage[corev1.ResourceName(name)] = quantity(name, set.Usage[name])
		}
		admission.PodSetAssignments = append(admission.PodSetAssignments, assigned)
	}
	if w.Admitted == nil {
		return made
	}
	made.Status.Admission = admission
	conditions := []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted}
	if w.Evicted {
		conditions = append(conditions, kueue.WorkloadEvicted)
	}
	for _, kind := range conditions {
		made.Status.Conditions = append(made.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: at(*w.Admitted), Reason: "Given",
		})
	}
	return made
}

// world is one Kueue: its caches, queues and scheduler, with a client that keeps objects in memory.
type world struct {
	t         *testing.T
	ctx       context.Context
	clock     *testingclock.FakeClock
	zero      time.Time
	client    client.Client
	cache     *schdcache.Cache
	queues    *qcache.Manager
	requeue   func(context.Context) int
	scheduler *Scheduler
	routines  *sync.WaitGroup
	expected  *expectations.Store
	given     sets.Set[string]
	gang      *oracleGang
	// For each workload that was evicted because of its pods, its backoff in seconds.
	backoffs map[string]int
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newWorld(ctx context.Context, t *testing.T, given *oracleCase) *world {
	_, log := utiltesting.ContextWithLog(t)
	w := &world{t: t, ctx: ctx, zero: time.Now().Truncate(time.Second), routines: &sync.WaitGroup{}, given: sets.New[string]()}
	w.gang, w.backoffs = given.Gang, map[string]int{}
	timestamp := config.EvictionTimestamp
	if w.gang != nil {
		timestamp = w.gang.Timestamp
	}
	w.clock = testingclock.NewFakeClock(w.zero)
	var locals []kueue.LocalQueue
	for _, queue := range given.Queues {
		locals = append(locals, *utiltestingapi.MakeLocalQueue(queue.Name, namespace).ClusterQueue(queue.Name).Obj())
	}
	var workloads []kueue.Workload
	for _, found := range slices.Concat(given.Running, given.Pending) {
		workloads = append(workloads, *found.object(w.zero))
	}
	for _, found := range given.Running {
		w.given.Insert(found.Name)
	}
	builder := utiltesting.NewClientBuilder().
		WithLists(&kueue.WorkloadList{Items: workloads}, &kueue.LocalQueueList{Items: locals}).
		WithObjects(utiltesting.MakeNamespaceWrapper(namespace).Obj()).
		WithStatusSubresource(&kueue.Workload{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: utiltesting.TreatSSAAsStrategicMerge})
	must(t, tasindexer.SetupIndexes(ctx, utiltesting.AsIndexer(builder)))
	w.client = builder.Build()
	w.expected = preemptexpectations.New()
	w.cache = schdcache.New(w.client)
	queues, requeuer := qcache.NewManagerForUnitTestsWithRequeuer(w.client, w.cache, qcache.WithPreemptionExpectations(w.expected),
		qcache.WithPodsReadyRequeuingTimestamp(timestamp))
	w.queues, w.requeue = queues, requeuer.ProcessRequeues
	for i := range locals {
		must(t, w.queues.AddLocalQueue(ctx, &locals[i]))
	}
	for _, queue := range given.Queues {
		for _, group := range queue.Groups {
			for _, flavor := range group.Flavors {
				made := utiltestingapi.MakeResourceFlavor(flavor.Name)
				if given.Topology != nil {
					made = made.NodeLabel("type", flavor.Name).TopologyName("grid")
				}
				w.cache.AddOrUpdateResourceFlavor(log, made.Obj())
			}
		}
	}
	if given.Topology != nil {
		given.Topology.add(w)
	}
	for _, queue := range given.Queues {
		made := queue.object()
		must(t, w.cache.AddClusterQueue(ctx, made))
		must(t, w.queues.AddClusterQueue(ctx, made))
		must(t, w.client.Create(ctx, made.DeepCopy()))
	}
	for _, cohort := range given.Cohorts {
		made := cohort.object()
		must(t, w.cache.AddOrUpdateCohort(made))
		w.queues.AddOrUpdateCohort(ctx, made)
	}
	var sharing *config.FairSharing
	if given.FairSharing != nil {
		sharing = &config.FairSharing{PreemptionStrategies: given.FairSharing.Strategies}
	}
	w.scheduler = New(w.queues, w.cache, w.client, &utiltesting.EventRecorder{},
		WithFairSharing(sharing), WithClock(t, w.clock), WithPreemptionExpectations(w.expected), WithPodsReadyRequeuingTimestamp(timestamp))
	w.scheduler.setAdmissionRoutineWrapper(routine.NewWrapper(func() { w.routines.Add(1) }, func() { w.routines.Done() }))
	go w.queues.CleanUpOnContext(ctx)
	// New queues request another evaluation; otherwise, it would happen with the next eviction anywhere.
	w.requeue(ctx)
	return w
}

func (g *oracleTopology) add(w *world) {
	_, log := utiltesting.ContextWithLog(w.t)
	for _, each := range g.Nodes {
		allocatable := corev1.ResourceList{}
		for name, value := range each.Allocatable {
			allocatable[corev1.ResourceName(name)] = quantity(name, value)
		}
		node := testingnode.MakeNode(each.Name).StatusAllocatable(allocatable)
		for key, value := range each.Labels {
			node = node.Label(key, value)
		}
		if each.Ready {
			node = node.Ready()
		} else {
			node = node.NotReady()
		}
		w.cache.TASCache().SyncNode(node.Obj())
	}
	w.cache.AddOrUpdateTopology(log, utiltestingapi.MakeTopology("grid").Levels(g.Levels...).Obj())
}

func (w *world) cycle() {
	w.scheduler.schedule(w.ctx)
	w.routines.Wait()
}

func (w *world) workloads() map[string]*kueue.Workload {
	list := &kueue.WorkloadList{}
	must(w.t, w.client.List(w.ctx, list))
	found := map[string]*kueue.Workload{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found
}

func names(found map[kueue.ClusterQueueReference][]workload.Reference) []string {
	var all []string
	for _, references := range found {
		for _, reference := range references {
			all = append(all, strings.TrimPrefix(string(reference), namespace+"/"))
		}
	}
	slices.Sort(all)
	return all
}

func isTrue(of *kueue.Workload, kind string) bool {
	return apimeta.IsStatusConditionTrue(of.Status.Conditions, kind)
}

func (w *world) pending(all map[string]*kueue.Workload) []object {
	found := []object{}
	add := func(list []string, parked bool) {
		for _, name := range list {
			entry := object{"name": name, "parked": parked, "reason": nil}
			if there := apimeta.FindStatusCondition(all[name].Status.Conditions, kueue.WorkloadQuotaReserved); there != nil &&
				there.Status == metav1.ConditionFalse {
				entry["reason"] = there.Reason
			}
			found = append(found, entry)
		}
	}
	add(names(w.queues.Dump()), false)
	add(names(w.queues.DumpInadmissible()), true)
	return sorted(found)
}

func sorted(list []object) []object {
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(fmt.Sprint(a["name"]), fmt.Sprint(b["name"])) })
	return list
}

func podSets(of *kueue.Admission) []object {
	var found []object
	for _, each := range of.PodSetAssignments {
		flavors := map[string]string{}
		for name, flavor := range each.Flavors {
			flavors[string(name)] = string(flavor)
		}
		made := object{"name": string(each.Name), "count": *each.Count, "flavors": flavors}
		if places := utiltas.InternalFrom(each.TopologyAssignment); places != nil {
			domains := map[string]int32{}
			for _, domain := range places.Domains {
				domains[domain.Values[len(domain.Values)-1]] = domain.Count
			}
			made["domains"] = domains
		}
		found = append(found, made)
	}
	return found
}

func oneCycle(w *world) object {
	w.cycle()
	admitted, preempted := []object{}, []object{}
	all := w.workloads()
	for name, each := range all {
		if isTrue(each, kueue.WorkloadQuotaReserved) && !w.given.Has(name) {
			admitted = append(admitted, object{"name": name, "pod_sets": podSets(each.Status.Admission)})
		}
		if found := apimeta.FindStatusCondition(each.Status.Conditions, kueue.WorkloadPreempted); found != nil &&
			found.Status == metav1.ConditionTrue {
			preempted = append(preempted, object{"name": name, "reason": found.Reason})
		}
	}
	return object{"admitted": sorted(admitted), "preempted": sorted(preempted), "pending": w.pending(all)}
}

// rest runs cycles until nothing changes; evicted workloads return their quota after each. It returns whether it came
// to rest.
func (w *world) rest(preempted *[]object) bool {
	_, log := utiltesting.ContextWithLog(w.t)
	idle := 0
	last := ""
	for range mostCycles {
		if len(w.queues.Dump()) == 0 {
			return true
		}
		before := w.workloads()
		w.clock.Step(time.Second)
		w.cycle()
		after := w.workloads()
		progress := false
		woken := sets.New[kueue.ClusterQueueReference]()
		for _, name := range slices.Sorted(maps.Keys(after)) {
			each := after[name]
			if !isTrue(each, kueue.WorkloadQuotaReserved) {
				continue
			}
			if !isTrue(before[name], kueue.WorkloadQuotaReserved) {
				progress = true
				w.queues.DeleteWorkload(log, workload.Key(each))
			}
			if !isTrue(each, kueue.WorkloadEvicted) {
				continue
			}
			progress = true
			if found := apimeta.FindStatusCondition(each.Status.Conditions, kueue.WorkloadPreempted); found != nil {
				*preempted = append(*preempted, object{"name": name, "reason": found.Reason})
			}
			w.expected.ObservedUID(log, types.NamespacedName{Namespace: namespace, Name: name}, each.UID)
			queue := each.Status.Admission.ClusterQueue
			workload.UnsetQuotaReservationWithCondition(each, "Pending", "evicted", w.clock.Now())
			must(w.t, w.client.Status().Update(w.ctx, each))
			must(w.t, w.cache.DeleteWorkload(log, workload.Key(each)))
			must(w.t, w.queues.AddOrUpdateWorkload(log, each))
			woken.Insert(queue)
		}
		if woken.Len() > 0 {
			qcache.NotifyRetryInadmissible(w.queues, woken)
			w.requeue(w.ctx)
		}
		// A workload that is set aside in a cycle is a change too: the next in the queue is evaluated.
		set := strings.Join(names(w.queues.Dump()), " ")
		if progress || set != last {
			idle = 0
		} else {
			idle++
		}
		last = set
		if idle >= restCycles {
			return true
		}
	}
	return false
}

func (w *world) finish(name string, all map[string]*kueue.Workload) {
	_, log := utiltesting.ContextWithLog(w.t)
	queue := all[name].Status.Admission.ClusterQueue
	must(w.t, w.client.Delete(w.ctx, all[name]))
	must(w.t, w.cache.DeleteWorkload(log, workload.Key(all[name])))
	qcache.NotifyRetryInadmissible(w.queues, sets.New(queue))
	w.requeue(w.ctx)
}

// timeOut does what Kueue's controllers do with a workload whose pods aren't ready in time.
func (w *world) timeOut(name string, all map[string]*kueue.Workload) {
	_, log := utiltesting.ContextWithLog(w.t)
	each := all[name]
	var count int32
	if each.Status.RequeueState != nil && each.Status.RequeueState.Count != nil {
		count = *each.Status.RequeueState.Count
	}
	if w.gang.Limit != nil && count+1 > *w.gang.Limit {
		w.finish(name, all)
		return
	}
	queue := each.Status.Admission.ClusterQueue
	workload.UpdateRequeueState(each, w.gang.Base, w.gang.Most, w.clock)
	w.backoffs[name] = int(each.Status.RequeueState.RequeueAt.Sub(w.clock.Now()).Seconds())
	workloadevict.SetEvictedCondition(each, w.clock.Now(), kueue.WorkloadEvictedByPodsReadyTimeout, "late")
	workload.UnsetQuotaReservationWithCondition(each, "Pending", "evicted", w.clock.Now())
	workload.SetRequeuedCondition(each, kueue.WorkloadEvictedByPodsReadyTimeout, "late", false)
	must(w.t, w.client.Status().Update(w.ctx, each))
	must(w.t, w.cache.DeleteWorkload(log, workload.Key(each)))
	qcache.NotifyRetryInadmissible(w.queues, sets.New(queue))
	w.requeue(w.ctx)
}

// endBackoffs returns all workloads that back off to their queues, in the order of their times.
func (w *world) endBackoffs() {
	_, log := utiltesting.ContextWithLog(w.t)
	var late []*kueue.Workload
	for name, each := range w.workloads() {
		if _, backs := w.backoffs[name]; backs {
			late = append(late, each)
			if at := each.Status.RequeueState.RequeueAt.Time; at.After(w.clock.Now()) {
				w.clock.SetTime(at)
			}
		}
	}
	w.clock.Step(time.Second)
	slices.SortFunc(late, func(a, b *kueue.Workload) int {
		if at := a.Status.RequeueState.RequeueAt.Compare(b.Status.RequeueState.RequeueAt.Time); at != 0 {
			return at
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, each := range late {
		each.Status.RequeueState.RequeueAt = nil
		workload.SetRequeuedCondition(each, kueue.WorkloadBackoffFinished, "over", true)
		must(w.t, w.client.Status().Update(w.ctx, each))
		must(w.t, w.queues.AddOrUpdateWorkload(log, each))
	}
	w.backoffs = map[string]int{}
}

func admittedIn(all map[string]*kueue.Workload, queue string, count int) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if isTrue(all[name], kueue.WorkloadQuotaReserved) && string(all[name].Status.Admission.ClusterQueue) == queue {
			found = append(found, name)
		}
	}
	return found[:min(count, len(found))]
}

func scenario(w *world, steps []oracleStep) []object {
	_, log := utiltesting.ContextWithLog(w.t)
	var found []object
	preempted := []object{}
	for _, step := range steps {
		for _, each := range step.Submit {
			each.Created = w.clock.Since(w.zero).Seconds()
			w.clock.Step(time.Second)
			made := each.object(w.zero)
			must(w.t, w.client.Create(w.ctx, made))
			must(w.t, w.queues.AddOrUpdateWorkload(log, made))
		}
		if step.Finish != nil {
			all := w.workloads()
			chosen := step.Finish.Names
			if step.Finish.Count > 0 {
				chosen = append(chosen, admittedIn(all, step.Finish.Queue, step.Finish.Count)...)
			}
			for _, name := range chosen {
				w.finish(name, all)
			}
		}
		if step.Requeue {
			w.endBackoffs()
		}
		if step.TimeOut != nil {
			all := w.workloads()
			for _, name := range admittedIn(all, step.TimeOut.Queue, step.TimeOut.Count) {
				w.timeOut(name, all)
				w.clock.Step(time.Second)
			}
		}
		rests := w.rest(&preempted)
		all := w.workloads()
		admitted := []string{}
		flavors := map[string][]object{}
		since := map[string]float64{}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if isTrue(all[name], kueue.WorkloadQuotaReserved) {
				admitted = append(admitted, name)
				reserved := apimeta.FindStatusCondition(all[name].Status.Conditions, kueue.WorkloadQuotaReserved)
				since[name] = reserved.LastTransitionTime.Sub(w.zero).Seconds()
				flavors[name] = podSets(all[name].Status.Admission)
			}
		}
		snapshot, err := w.cache.Snapshot(w.ctx)
		must(w.t, err)
		share := map[string]string{}
		for _, queue := range snapshot.ClusterQueues() {
			share[string(queue.Name)] = queue.DominantResourceShare().PreciseWeightedShareSerialized()
		}
		found = append(found, object{
			"admitted": admitted, "pod_sets": flavors, "pending": w.pending(all), "share": share,
			"preempted": sorted(slices.Clone(preempted)), "rests": rests, "backoffs": maps.Clone(w.backoffs),
			"reserved_s": since,
		})
	}
	return found
}

func TestOracle(t *testing.T) {
	from, to := os.Getenv("ORACLE_IN"), os.Getenv("ORACLE_OUT")
	times, _ := strconv.Atoi(os.Getenv("ORACLE_TIMES"))
	seconds, _ := strconv.Atoi(os.Getenv("ORACLE_SECONDS"))
	if from == "" || to == "" {
		t.Skip("ORACLE_IN and ORACLE_OUT name the cases and where the answers go")
	}
	text, err := os.ReadFile(from)
	must(t, err)
	var cases []oracleCase
	must(t, json.Unmarshal(text, &cases))
	answers := []object{}
	for i := range cases {
		given := &cases[i]
		t.Run(given.ID, func(t *testing.T) {
			gates := map[featuregate.Feature]bool{features.UnadmittedWorkloadsObservability: true}
			for name, on := range given.Gates {
				gates[featuregate.Feature(name)] = on
			}
			features.SetFeatureGatesDuringTest(t, gates)
			seen := sets.New[string]()
			found := []any{}
			for range max(times, 1) {
				ctx, _ := utiltesting.ContextWithLog(t)
				ctx, cancel := context.WithTimeout(ctx, time.Duration(max(seconds, 1))*time.Second)
				var answer any
				if w := newWorld(ctx, t, given); given.Kind == "scenario" {
					answer = scenario(w, given.Steps)
				} else {
					answer = oneCycle(w)
				}
				if ctx.Err() != nil {
					// Its scheduler then stops within a cycle, and the state isn't a result.
					t.Fatalf("%s took more than %d seconds", given.ID, seconds)
				}
				cancel()
				text, err := json.Marshal(answer)
				must(t, err)
				if !seen.Has(string(text)) {
					seen.Insert(string(text))
					found = append(found, answer)
				}
			}
			answers = append(answers, object{"id": given.ID, "answers": found})
		})
	}
	out, err := json.Marshal(answers)
	must(t, err)
	must(t, os.WriteFile(to, out, 0o600))
}
